"""Whatever happens to a small cluster: no pod is written to twice at once, idle room is never given away twice, and
every pod gets a node in the end."""  # noqa: D205, D209 - one sentence

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.service.control.opportunistic.idle_scene import IdleScene, needs, runs
from tests.service.control.scene import node

CPU, THRESHOLD, YOUNG_SECONDS = 1000, 0.8, 30.0
NODES = ("n1", "n2")
AMOUNTS = (100, 300, 600, 900)

what_waits = st.lists(
    st.tuples(st.sampled_from(AMOUNTS), st.integers(0, 1), st.sampled_from("ab")), min_size=2, max_size=9
)
happens = st.lists(
    st.sampled_from(
        ["step", "step", "write", "bind", "write", "bind", "end", "restart", "lead", "refuse", "deaf", "blind", "wait"]
    ),
    max_size=40,
)
VERBS = ("demote", "restore", "nominate", "release", "clear", "take back")


class RandomScene(IdleScene):
    """What a pod uses is a fifth of what it needs. Whatever passes `take` is checked against the sums made here."""

    def __init__(self, waiting):
        self.blind = False
        super().__init__(*(node(name, CPU) for name in NODES))
        self.late = True
        self.see(*(runs(f"full-{name}", 900, on=name) for name in NODES))
        for number, (cpu, priority, queue) in enumerate(waiting):
            self.see(needs(f"p{number}", cpu, priority=priority, queue=queue))

    def usage(self):
        old = [it for it in self.pods.values() if it.node]
        self.use = {
            name: None if self.blind else sum(it.demand["cpu"] for it in old if it.node == name) / 5 for name in NODES
        }
        return super().usage()

    def take(self, planned, slots, now):
        releases = super().take(planned, slots, now)
        assert len(releases) <= slots
        assert not (releases and self.blind), "nothing was measured"
        rows, names = planned.plan.assignments, planned.snapshot.layout.names
        planned_on = dict.fromkeys(NODES, 0.0)
        for row, place in zip(rows.task_class.tolist(), rows.node.tolist(), strict=True):
            planned_on[names[place]] += planned.plan_input.classes[row].template.demand["cpu"]
        for name in {release.node for release in releases}:
            given_now = sum(release.pod.demand["cpu"] for release in releases if release.node == name)
            there = [it for it in self.pods.values() if (it.node or it.nominated) == name]
            # Holds for each node: the young, and those to come, count with what they need, the others as measured.
            total = planned_on[name] + given_now
            for it in there:
                is_old = it.node is not None and now - it.started >= YOUNG_SECONDS
                total += it.demand["cpu"] / 5 if is_old else it.demand["cpu"]
            assert total <= THRESHOLD * CPU + 1e-6, (name, total)
        return releases

    def step(self, seconds=0.0):
        sent = super().step(seconds)
        queued = self.cluster.backlog.writes.queued
        assert all(count <= 1 for count in queued.values()), queued
        return sent

    def bind_what_is_released(self):
        """Do what kube-scheduler does: bind where it is nominated, else where its requests fit, else refuse."""
        for it in list(self.pods.values()):
            if it.gates or it.node or it.finished:
                continue
            free = {
                name: CPU
                - sum(other.counted.get("cpu", 0) for other in self.pods.values() if other.holds == name)
                - sum(
                    other.counted.get("cpu", 0)
                    for other in self.pods.values()
                    if other is not it and other.node is None and other.nominated == name
                )
                for name in NODES
            }
            wanted = [it.nominated] if it.nominated else list(NODES)
            fits = [name for name in wanted if it.counted.get("cpu", 0) <= free[name]]
            if fits:
                assert it.nominated or not it.opportunistic, "it may run anywhere"
                self.change(it.name, node=fits[0], started=self.now, unschedulable=False)
            else:
                self.change(it.name, unschedulable=True)

    def end_oldest(self):
        running = sorted((it for it in self.pods.values() if it.holds), key=lambda it: (it.started, it.name))
        for it in running[:1]:
            self.change(it.name, finished=True)

    def happen(self, event):
        match event:
            case "step" | "wait":
                self.step(1.0 if event == "step" else 20.0)
            case "write":
                for write in self.queue[:3]:
                    self.queue.remove(write)
                    write()
            case "bind":
                self.bind_what_is_released()
            case "end":
                self.end_oldest()
            case "restart":
                self.restart()
            case "lead":
                self.leading = not self.leading
            case "refuse":
                self.refuse = set() if self.refuse else {(verb, "p0") for verb in VERBS}
            case "deaf":
                if self.deaf:
                    self.hear()
                else:
                    self.deaf = True
            case "blind":
                self.blind = not self.blind


@settings(max_examples=150, deadline=None)
@given(what_waits, happens)
def test_nobody_is_lost_or_written_to_twice_and_no_room_is_given_twice(waiting, events):
    scene = RandomScene(waiting)
    for event in events:
        scene.happen(event)
    # From here on all goes well.
    scene.leading, scene.refuse, scene.blind = True, set(), False
    scene.hear()
    for _ in range(12 * len(waiting) + 40):
        scene.step(5.0)
        scene.write_all()
        unbound = [it for it in scene.pods.values() if not (it.node or it.finished)]
        if not unbound:
            break
        scene.bind_what_is_released()
        scene.end_oldest()
    assert [it.name for it in scene.pods.values() if not (it.node or it.finished)] == []
