"""Pods as the API server gives them, and what it makes of a patch."""

import copy

ANNOTATION = "dovetail.dev/regular-requests"


def container(name="main", *, requests=None, limits=None, **more):
    resources = {"requests": requests, "limits": limits}
    return {"name": name, "resources": {kind: amounts for kind, amounts in resources.items() if amounts}, **more}


def pod(*containers, init=(), annotations=None, owner="Job", qos="Burstable", **spec):
    """Return a waiting pod of 2 CPUs and 4 GiB without a limit, unless it has other containers."""
    whole = containers or (container(requests={"cpu": "2", "memory": "4Gi"}),)
    return {
        "metadata": {
            "name": "p",
            "namespace": "default",
            "uid": "uid-p",
            "annotations": annotations or {},
            "ownerReferences": [{"kind": owner, "name": "o", "uid": "uid-o", "controller": True}] if owner else [],
        },
        "spec": {"containers": list(whole), "initContainers": list(init), **spec},
        "status": {"phase": "Pending", "qosClass": qos},
    }


def patched(document, patch):
    """Return a pod with a patch of ours, or None, applied as the API server does: lists are merged by name."""
    return document if patch is None else _merged(document, patch)


def _merged(old, patch):
    new = copy.deepcopy(old)
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        elif isinstance(value, dict):
            new[key] = _merged(new.get(key) or {}, value)
        elif isinstance(value, list):
            by_name = {item["name"]: item for item in new[key]}
            assert by_name.keys() >= {item["name"] for item in value}, "a resize adds no container"
            for item in value:
                by_name[item["name"]] = _merged(by_name[item["name"]], item)
            new[key] = list(by_name.values())
        else:
            new[key] = value
    return new


def qos_class(document):
    """Return the QoS class by Kubernetes' rules, without Guaranteed: pod-level resources decide where they are set."""
    spec = document["spec"]
    level = spec.get("resources") or {}
    everywhere = [level] if any(level.values()) else [it["resources"] for it in _containers(spec)]
    amounts = [
        amount for it in everywhere for kind in ("requests", "limits") for amount in (it.get(kind) or {}).values()
    ]
    return "Burstable" if any(amount != "0" for amount in amounts) else "BestEffort"


def _containers(spec):
    return [*spec["containers"], *spec["initContainers"]]
