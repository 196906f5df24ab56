"""`order: auto`, wired: who decides whether new pods are held, who writes it, and who ends it."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from extender.adapters.kube.api import Api
from extender.adapters.kube.holding import ApiHold
from extender.adapters.kube.leases import ApiLease
from extender.control.cluster_view import ClusterView
from extender.control.holding.decision import Holding
from extender.control.holding.ender import STALE_LEASES, HoldEnder
from extender.control.holding.keeper import HoldKeeper
from extender.control.holding.room_wanted import RoomWanted
from extender.settings import Settings

_CALL_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class HoldingParts:
    """What `dovetail control` needs: `room_wanted` hears of each plan, `keeper` writes what follows."""

    room_wanted: RoomWanted
    keeper: HoldKeeper


def holding_of(
    settings: Settings, api: Api, cluster: ClusterView, now: Callable[[], float], moved: Callable[[], None]
) -> HoldingParts | None:
    """Return the parts for `order: auto`; None with another order."""
    if settings.order != "auto":
        return None
    holding, hold_object = Holding(), ApiHold(api, settings.hold_name, _CALL_SECONDS)
    keeper = HoldKeeper(holding, hold_object, cluster.leads, now, always=always_held(settings), moved=moved)
    return HoldingParts(RoomWanted(cluster.input_builder.allowed_nodes, holding, keeper.soon), keeper)


def always_held(settings: Settings) -> str:
    """Return why pods are held at any time with `order: auto`, in words; empty where they are not."""
    if settings.reclaim.fair_share_seconds > 0 or settings.reclaim.minimum_share_seconds > 0:
        return "reclaim acts for held pods alone"
    if settings.opportunistic.enabled:
        return "only held pods start on what others do not use"
    return ""


def ender_of(settings: Settings, api: Api, moved: Callable[[], None]) -> HoldEnder | None:
    """Return what ends holding in `dovetail serve` with `order: auto`; None with another order."""
    if settings.order != "auto":
        return None
    lease = settings.control.lease
    return HoldEnder(
        ApiLease(api, lease.namespace, lease.name, lease.seconds, _CALL_SECONDS),
        ApiHold(api, settings.hold_name, _CALL_SECONDS),
        STALE_LEASES * lease.seconds,
        time.monotonic,
        moved,
    )
