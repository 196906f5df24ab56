"""What kube-scheduler's own plugins say, written down a second time from their source, so that ours can be held to it.

NodeName, NodeUnschedulable, TaintToleration, NodeAffinity and NodeResourcesFit of Kubernetes 1.34 to 1.36.
"""

import re

_INTEGER = re.compile(r"[+-]?[0-9]+")
_UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "value": "", "effect": "NoSchedule"}


def allows(pod, node):
    """Say whether a pod may go to a node, whatever room there is; both are trees as the API server shows them."""
    spec, taints = pod["spec"], list(node["spec"].get("taints") or ())
    if node["spec"].get("unschedulable"):
        taints.append(_UNSCHEDULABLE)
    hard = [taint for taint in taints if taint.get("effect") in ("NoSchedule", "NoExecute")]
    if not all(any(_tolerates(it, taint) for it in spec.get("tolerations") or ()) for taint in hard):
        return False
    labels, name = node["metadata"].get("labels") or {}, node["metadata"]["name"]
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(_meets(term, name, labels) for term in required["nodeSelectorTerms"] or ())


def _tolerates(toleration, taint):
    if (toleration.get("effect") or taint["effect"]) != taint["effect"]:
        return False
    key, operator = toleration.get("key") or "", toleration.get("operator") or "Equal"
    if key and key != taint["key"]:
        return False
    if not key and operator != "Exists":  # the API server refuses it
        return False
    return operator == "Exists" or (toleration.get("value") or "") == (taint.get("value") or "")


def _meets(term, name, labels):
    """Say whether a node meets a term; one without expressions, or with one that cannot be parsed, is met by none."""
    asked = [(it, labels) for it in term.get("matchExpressions") or ()]
    asked += [(it, {"metadata.name": name}) for it in term.get("matchFields") or ()]
    return bool(asked) and all(_is_met(expression, known) for expression, known in asked)


def _is_met(expression, known):
    key, operator, values = expression["key"], expression["operator"], expression.get("values") or []
    match operator:
        case "In":
            return bool(values) and known.get(key) in values
        case "NotIn":
            return bool(values) and known.get(key) not in values
        case "Exists":
            return not values and key in known
        case "DoesNotExist":
            return not values and key not in known
        case "Gt" | "Lt":
            return len(values) == 1 and key in known and _compares(operator, known[key], values[0])
    return False


def _compares(operator, ours, theirs):
    if not (_INTEGER.fullmatch(ours) and _INTEGER.fullmatch(theirs)):
        return False
    if not all(-(2**63) <= int(number) < 2**63 for number in (ours, theirs)):
        return False
    return int(ours) > int(theirs) if operator == "Gt" else int(ours) < int(theirs)
