"""PodDisruptionBudgets that allow no eviction now, and the pods that they guard; read once, nothing is written."""

from collections.abc import Mapping, Sequence

import msgspec

from extender.adapters.kube.api import Api

_BUDGETS = "/apis/policy/v1/poddisruptionbudgets"


class _Meta(msgspec.Struct):
    name: str
    namespace: str = ""


class _Expression(msgspec.Struct):
    key: str
    operator: str
    values: Sequence[str] | None = None


class _Selector(msgspec.Struct, rename="camel"):
    match_labels: Mapping[str, str] | None = None
    match_expressions: Sequence[_Expression] | None = None


class _Spec(msgspec.Struct):
    selector: _Selector | None = None


class _Status(msgspec.Struct, rename="camel"):
    disruptions_allowed: int = 0


class _Budget(msgspec.Struct):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class _Pod(msgspec.Struct):
    metadata: _Meta


class _Budgets(msgspec.Struct):
    items: Sequence[_Budget] = ()


class _Pods(msgspec.Struct):
    items: Sequence[_Pod] = ()


def exhausted_budgets(api: Api) -> dict[str, str]:
    """Return, by each pod that is guarded (namespace/name), the budget that allows no eviction of it now.

    Which pods a budget selects the API server is asked. Raises ClusterError.
    """
    guards = {}
    for budget in msgspec.convert(api.read(_BUDGETS), _Budgets).items:
        selector, namespace = budget.spec.selector, budget.metadata.namespace
        if budget.status.disruptions_allowed > 0 or selector is None:
            continue
        pods = api.read(f"/api/v1/namespaces/{namespace}/pods", [("labelSelector", written(selector))])
        for pod in msgspec.convert(pods, _Pods).items:
            guards[f"{namespace}/{pod.metadata.name}"] = f"{namespace}/{budget.metadata.name}"
    return guards


def written(selector: _Selector) -> str:
    """Return a label selector as the API server takes it in a query; an empty one selects all."""
    parts = [f"{key}={value}" for key, value in (selector.match_labels or {}).items()]
    for one in selector.match_expressions or ():
        match one.operator:
            case "Exists":
                parts.append(one.key)
            case "DoesNotExist":
                parts.append(f"!{one.key}")
            case operator:
                parts.append(f"{one.key} {operator.lower()} ({','.join(one.values or ())})")
    return ",".join(parts)
