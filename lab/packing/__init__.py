"""How well a cluster is packed: Verma, Korupolu and Wilkes, "Evaluating job packing in warehouse-scale computing".

`model` says what there is: machines, and classes of equal tasks. `placing` places classes on machines by a rule of
`rules`, in an order of `orders`. The measures stand on it: `holes`, `inflation`, `compaction`, and `bound`, which no
placement can beat. `checkpoints`, `traces` and `live` read what there is; `reporting` and `words` say what was found.
All but these readers is pure. Nothing here moves a pod.
"""
