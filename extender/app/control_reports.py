"""What `dovetail control` reports: counts of what was done, gauges of what there is, and the waits for who explains."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from extender.adapters.http.wait_report import WaitReport, written
from extender.adapters.metrics.control import ControlGauges, ControlMetrics
from extender.app.caches import Caches
from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog
from extender.control.holding.keeper import HoldKeeper
from extender.control.idle_room.load_besides_pods import LoadBesidesPods
from extender.control.leading import Leader
from extender.control.opportunistic.second_pass import SecondPass
from extender.control.reclaim.trials import Vain
from extender.control.release.loop import Releaser
from extender.control.release.refusals import refused_pods
from extender.control.release.sending import COMPLETED, OPPORTUNISTIC, Release
from extender.explain.events import Teller
from extender.explain.idle_words import idle_reasons
from extender.explain.observing import Observer

_OLD_SECONDS = 60.0
"""What a plan left that is older is not told: plans since then have not come to their end."""


@dataclass(frozen=True, slots=True)
class ControlListener:
    """Hears of each write from the thread that made it; metrics and teller may be called from any."""

    metrics: ControlMetrics
    teller: Teller

    def note_release(self, release: Release, node: str | None, waited_seconds: float) -> None:
        """Count a release, and write an event on the pod."""
        self.metrics.releases.labels(release.how).inc()
        self.metrics.held_seconds.observe(waited_seconds)
        if release.level:
            self.metrics.locality.count(release.level, release.passed_over)
        idle = release.how == OPPORTUNISTIC or (release.how == COMPLETED and release.pod.opportunistic)
        self.teller.note_release(release.pod, node, waited_seconds, release.level, idle=idle)

    def note_reclaim(self, victim: Pod, queue: str, why: str) -> None:  # noqa: ARG002 - the port's signature
        """Count an eviction."""
        self.metrics.reclaims.labels(why).inc()

    def note_vain(self, vain: Vain) -> None:
        """Count evictions that were in vain."""
        self.metrics.reclaims_in_vain.labels(vain.why).inc(vain.evictions)


@dataclass(frozen=True, slots=True)
class ControlReports:
    """Reads what the loops left, in the server's threads: each value is replaced as a whole, none is changed."""

    leader: Leader
    caches: Caches
    backlog: Backlog
    releaser: Releaser
    observer: Observer
    now: Callable[[], float]
    keeper: HoldKeeper | None = None
    load: LoadBesidesPods | None = None
    second_pass: SecondPass | None = None

    def waits(self) -> bytes:
        """Return what the last plans left, as JSON for who explains a pod or looks for what is wrong."""
        carried = self.releaser.planner.carried
        return written(
            WaitReport(
                leads=self.leader.leads(),
                in_force=self.observer.waits.in_force,
                jobs=carried.locality,
                age_seconds=max(self.now() - carried.planned_at, 0.0),
                passed_over=self.releaser.passed_over.seconds(),
                reserved={name: reservation.nodes for name, reservation in carried.reserved.items()},
                kept_idle=self.releaser.kept_idle,
                held=self.keeper.shown if self.keeper is not None else None,
                held_why=self.keeper.why if self.keeper is not None else "",
                load=self.load.by_node if self.load is not None else {},
                idle=self._idle(),
                rests=self.backlog.rest_seconds(self.now()),
            )
        )

    def _idle(self) -> Mapping[str, str] | None:
        """Return why pods find no idle room, by class, as the last second pass left them; older ones say nothing."""
        if self.second_pass is None:
            return None
        left = self.second_pass.left_over
        return {} if left is None or self.now() - left.at > _OLD_SECONDS else idle_reasons(left)

    def gauges(self) -> ControlGauges:
        """Return what the gauges show now."""
        observer, leads = self.observer, self.leader.leads()
        seen, load = observer.seen, observer.load
        return ControlGauges(
            leads=leads,
            ready=self.caches.problem() is None,
            in_flight=self.releaser.unbound if leads else 0,
            refused=sum(map(len, refused_pods(self.backlog).values())),
            cache_age_seconds=self.caches.ages(),
            held=seen.held,
            queues=seen.shares,
            oldest=seen.oldest,
            nodes=self.backlog.schedulable_nodes(),
            freed=load.freed,
            loaded_seconds=load.seconds,
            job_tasks=load.typical.tasks if load.typical else None,
            replicas=load.typical.replicas if load.typical else None,
            waits=observer.waits_by_level() if leads else {},
            kept_idle=self.releaser.kept_idle if leads else 0.0,
            ungated=seen.ungated,
            holding=self.keeper.shown if self.keeper is not None else None,
            hold_changes=self.keeper.flips if self.keeper is not None else None,
            passed_over=dict.fromkeys(seen.shares, 0.0) | dict(self.releaser.passed_over.seconds()) if leads else {},
        )
