"""What becomes of pods, queues and the installation, in words: for `explain`, `queues`, `doctor`, events and metrics.

Makes plans as `control` does (`planned_order`), says why each held pod waits (`wait_reasons`), and from these explains
one pod (`pod`, `advice`), all queues (`queues`) and the installation (`doctor`, `checks`). Never writes, never decides.
"""
