"""Cheap draws: quantities, names, annotations, pods and nodes as Kubernetes writes them, and bytes gone wrong.

Everything comes from the `Random` that is passed in, so that one number replays it. A hundred thousand a minute are
affordable.
"""

import json

GATE = "dovetail.dev/hold"
NODES = ("n0", "n1", "n2", "n3")
SUFFIXES = ("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-3", "e+09")
BAD_SUFFIXES = ("K", "KiB", "mi", "e", "e9999", "i", " ", "%", "\u0663", "_0", "\n", "\x00")
RESOURCES = ("cpu", "memory", "pods", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu", "a.b/c")
RATES = ("disk-read", "disk-write", "network-in", "network-out")
STRANGE = ("", " ", "\x00", "\n", "\ud7ff", "\u202e", "\U0001f600", "NaN", "nan", "inf", "-inf", "1e308", "1e-300")
OURS = ("demand", "duration", "tasks", "input", "capacity", "nominated", "turn", "opportunistic", "regular-requests")
THEIRS = (
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/group-name",
    "scheduling.volcano.sh/group-min-member",
    "kueue.x-k8s.io/pod-group-total-count",
    "pod-group.scheduling.sigs.k8s.io/min-available",
    "yunikorn.apache.org/app-id",
)
LABELS = ("dovetail.dev/job", "dovetail.dev/stage", "dovetail.dev/queue", "kueue.x-k8s.io/pod-group-name", "rack", "n")
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
INTEGERS = ("7", "-3", "0", "007", "+5", "99999999999999999999")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule", "")


def number(random):
    """Return the text of a number, mostly a small one."""
    kind = random.random()
    if kind < 0.5:
        return str(random.choice((0, 1, 2, 3, 10, 100, 1000, 1024, 2**31, 2**53 - 1, 2**53, 2**63)))
    if kind < 0.8:
        return f"{random.random() * 10 ** random.randint(-3, 15):.{random.randint(0, 9)}f}"
    return "".join(random.choices("0123456789.+-", k=random.randint(1, 12)))


def quantity(random):
    """Return the text of a quantity that Kubernetes accepts."""
    digits = str(random.choice((0, 1, 2, 3, 5, 100, 250, 1024, 2**31, random.randint(0, 10**12))))
    point = f".{random.randint(0, 999)}" if random.random() < 0.2 else ""
    return digits + point + random.choice(SUFFIXES)


def odd_quantity(random):
    """Return what may stand where a quantity is expected."""
    kind = random.random()
    if kind < 0.4:
        return quantity(random)
    if kind < 0.8:
        return number(random) + random.choice((*SUFFIXES, *BAD_SUFFIXES))
    if kind < 0.9:
        return random.choice(STRANGE)
    return text(random)


def text(random):
    """Return some text: short or, now and then, long; letters or anything."""
    size = random.choice((0, 1, 2, 5, 12, 12, 40, 300))
    if random.random() < 0.5:
        return "".join(random.choices("abcxyz019-./{}[]\":,'\\ ", k=size))
    return "".join(chr(random.choice((random.randint(0, 255), random.randint(0, 0xD7FF)))) for _ in range(size))


def value(random, depth=3):
    """Return any value that JSON has."""
    kind = random.randrange(9 if depth else 7)
    match kind:
        case 0:
            return None
        case 1:
            return random.random() < 0.5
        case 2:
            return random.choice((0, 1, -1, 2**31, 2**53, 2**63, 2**64, 10**30, -(2**63) - 1))
        case 3:
            return random.choice((0.5, -0.5, 1e308, 1e-300, 1e16))
        case 4 | 5:
            return odd_quantity(random)
        case 6:
            return text(random)
        case 7:
            return [value(random, depth - 1) for _ in range(random.randrange(3))]
    return {random.choice((*RATES, *NODES, "cpu", text(random))): value(random, depth - 1) for _ in range(2)}


def rates(random):
    """Return the text of a demand or capacity annotation, mostly a sound one."""
    if random.random() < 0.6:
        found = random.sample(RATES, random.randint(0, 4))
        return json.dumps({name: random.choice((quantity(random), random.randint(0, 10**9))) for name in found})
    return annotation(random)


def inputs(random):
    """Return the text of an input annotation, mostly a sound one."""
    if random.random() < 0.6:
        return json.dumps({name: quantity(random) for name in random.sample((*NODES, "gone"), random.randint(0, 3))})
    return annotation(random)


def requests(random):
    """Return the text of regular requests, perhaps of containers that a pod has."""
    if random.random() < 0.3:
        return annotation(random)
    amounts = {name: quantity(random) for name in random.sample(("cpu", "memory"), random.randint(0, 2))}
    part = random.choice(("containers", "initContainers", "pod", "limited"))
    return json.dumps({part: amounts if part == "pod" else {f"c{random.randrange(3)}": amounts}})


def annotation(random):
    """Return the text of any annotation of ours."""
    kind = random.random()
    if kind < 0.5:
        return json.dumps(value(random))
    if kind < 0.6:
        return "[" * random.choice((1, 30, 2000)) + "1"
    if kind < 0.7:
        return '{"a":' * random.choice((1, 30, 2000))
    return random.choice((number(random), text(random), random.choice(STRANGE)))


def pod(random, name="p"):
    """Return a pod that the API server would accept, as a tree: in annotations and labels anything may stand."""
    annotations = {}
    for key, draw in (("demand", rates), ("input", inputs), ("duration", annotation), ("tasks", number)):
        if random.random() < 0.4:
            annotations[f"dovetail.dev/{key}"] = draw(random)
    if random.random() < 0.3:
        annotations["dovetail.dev/regular-requests"] = requests(random)
    if random.random() < 0.2:
        annotations["dovetail.dev/opportunistic"] = random.choice(("only", "never", annotation(random)))
    for key in random.sample(THEIRS, random.choice((0, 0, 1, 2))):
        annotations[key] = random.choice((number(random), text(random), "g"))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{name}",
            "resourceVersion": str(random.randint(1, 10**6)),
            "creationTimestamp": random.choice((None, "2026-01-01T00:00:00Z", "0001-01-01T00:00:00Z")),
            "labels": {key: random.choice(("a", "b", "", "7", "1_0")) for key in random.sample(LABELS, 2)},
            "annotations": annotations,
            "ownerReferences": random.choice((None, [], [{"uid": "o", "kind": "Job", "controller": True}])),
        },
        "spec": _spec(random),
        "status": _status(random),
    }


def _spec(random):
    spec = {
        "schedulerName": random.choice(("dovetail", "default-scheduler")),
        "priority": random.choice((None, 0, 5, -10, 2**31 - 1, -(2**31))),
        "nodeName": random.choice((None, "", "n0")),
        "schedulingGates": random.choice((None, [], [{"name": GATE}], [{"name": GATE}, {"name": "b"}])),
        "containers": [_container(random) for _ in range(random.choice((1, 1, 2)))],
        "initContainers": [_container(random) for _ in range(random.choice((0, 0, 1, 2)))],
        "overhead": random.choice((None, {"cpu": "10m", "memory": "1Mi"})),
        "nodeSelector": random.choice((None, None, {}, {"rack": "a"})),
        "tolerations": [toleration(random) for _ in range(random.choice((0, 0, 1, 2)))],
        "volumes": random.choice((None, [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}], [{"name": "v"}])),
    }
    if random.random() < 0.4:
        spec["affinity"] = {"nodeAffinity": _affinity(random)}
    if random.random() < 0.1:
        spec["resources"] = {"requests": _amounts(random)}
    return spec


def _status(random):
    status = {
        "phase": random.choice(("Pending", "Running", "Succeeded", "Failed", "")),
        "startTime": random.choice((None, "2026-01-01T00:00:00Z")),
        "nominatedNodeName": random.choice((None, "", "n1")),
        "conditions": [
            {
                "type": random.choice(("PodScheduled", "PodResizePending", "Ready")),
                "status": random.choice(("True", "False")),
                "reason": random.choice((None, "SchedulingGated", "Infeasible", "Unschedulable")),
            }
        ],
    }
    if random.random() < 0.3:
        status["containerStatuses"] = [
            {"name": "c0", "resources": {"requests": _amounts(random)}, "allocatedResources": _amounts(random)}
        ]
    return status


def _container(random):
    return {
        "name": f"c{random.randrange(3)}",
        "resources": random.choice((None, {}, {"requests": _amounts(random)})),
        "restartPolicy": random.choice((None, "Always")),
    }


def _amounts(random):
    return {name: quantity(random) for name in random.sample(RESOURCES, random.randint(0, 3))}


def toleration(random):
    """Return a toleration."""
    return {
        "key": random.choice((None, "", "t", "node.kubernetes.io/unschedulable")),
        "operator": random.choice((None, "Equal", "Exists")),
        "value": random.choice((None, "", "v")),
        "effect": random.choice((None, *EFFECTS)),
    }


def _affinity(random):
    found = {}
    if random.random() < 0.7:
        found["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": [term(random) for _ in range(random.randint(0, 2))]
        }
    if random.random() < 0.5:
        found["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": random.randint(1, 100), "preference": term(random)}
        ]
    return found


def term(random):
    """Return a term of a node selector."""
    found = {"matchExpressions": [expression(random) for _ in range(random.choice((0, 1, 1, 2)))]}
    if random.random() < 0.2:
        found["matchFields"] = [{"key": "metadata.name", "operator": "In", "values": [random.choice(NODES)]}]
    return found


def expression(random):
    """Return an expression about a node's label."""
    operator = random.choice(OPERATORS)
    values = {"Exists": None, "DoesNotExist": None, "Gt": [random.choice(INTEGERS)], "Lt": [random.choice(INTEGERS)]}
    some = random.choice((["a"], ["a", "b"], ["7", ""]))
    return {"key": random.choice(("rack", "n", "gone")), "operator": operator, "values": values.get(operator, some)}


def node(random, name="n0"):
    """Return a node that the API server would accept, as a tree."""
    annotations = {"dovetail.dev/capacity": rates(random)} if random.random() < 0.5 else None
    labels = {random.choice(("rack", "n")): random.choice(("a", "b", "", "5", "10", "1_0", "99999999999999999999"))}
    return {
        "metadata": {"name": name, "resourceVersion": "7", "labels": labels, "annotations": annotations},
        "spec": {
            "unschedulable": random.random() < 0.2,
            "taints": [
                {"key": "t", "value": random.choice((None, "v")), "effect": random.choice(EFFECTS)}
                for _ in range(random.choice((0, 0, 1)))
            ],
        },
        "status": random.choice((None, {}, {"allocatable": _amounts(random)}, {"allocatable": {"cpu": "4"}})),
    }


def mutated(random, tree, times=1):
    """Return a copy of a tree in which so many parts are another thing, are gone, or stand twice."""
    tree = json.loads(json.dumps(tree))
    for _ in range(times):
        holder, key = _place(random, tree)
        if holder is None:
            return value(random)
        kind = random.random()
        if kind < 0.7:
            holder[key] = value(random)
        elif kind < 0.9:
            del holder[key]
        elif isinstance(holder, list):
            holder.append(holder[key])
        else:
            holder[text(random)] = holder[key]
    return tree


def _place(random, tree):
    """Return a dict or list somewhere in the tree, and a key of it."""
    holder, key, part = None, None, tree
    while isinstance(part, dict | list) and part and (holder is None or random.random() < 0.8):
        holder, key = part, random.choice(list(part) if isinstance(part, dict) else range(len(part)))
        part = part[key]
    return holder, key


def garbled(random, body):
    """Return bytes with some of them changed, cut, doubled or put elsewhere."""
    body = bytearray(body)
    for _ in range(random.choice((1, 1, 2, 5))):
        place = random.randrange(len(body) + 1)
        match random.randrange(5):
            case 0:
                body[place : place + 1] = bytes([random.randrange(256)])
            case 1:
                del body[place:]
            case 2:
                del body[place : place + random.randint(1, 20)]
            case 3:
                body[place:place] = body[place : place + random.randint(1, 50)]
            case 4:
                body[place:place] = random.choice(
                    (b'"', b"{", b"]", b",", b"null", b"\xff", b"\x00", b"1e999", b"[" * 3000)
                )
    return bytes(body)
