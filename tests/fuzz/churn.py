"""The release loop while everything around it goes wrong, against a cluster that behaves as Kubernetes does.

`Cluster` is what there truly is: the API server with its preconditions, a kube-scheduler that binds, refuses and
preempts, kubelets, controllers that make pods anew. What the process under test hears of it goes through `Pipe`s,
which are late or lose news until the next list. A scene lets things happen for a while, then lets the cluster heal;
then everybody who can run must have run. Only pods that kube-scheduler never binds stay as they are.
"""

import json
from collections import deque
from dataclasses import replace

import msgspec

from extender.adapters.kube.decoding import pod_from
from extender.adapters.kube.nodes import NodeObject, node_from
from extender.adapters.kube.objects import PodObject
from extender.cluster.events import NodeGone, NodeSeen, NodesListed, PodGone, PodSeen, PodsListed
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import HOLD_GATE
from extender.cluster.queues import Queue
from extender.control.backlog.backlog import Backlog
from extender.control.reclaim.loop import Timeouts
from extender.control.release.slots import Pace
from extender.errors import ClusterError
from extender.planner import Policy
from extender.verdict import judge
from tests.fuzz.books import lines
from tests.fuzz.broken import Broken, require
from tests.service.control.reclaim.test_loop import ReclaimScene
from tests.service.control.scene import OURS, Scene

POD_LIMITS, GPU_ODDS = (2, 5, 110), 0.5
GPU, OTHER_GATE = "nvidia.com/gpu", "other.example/gate"
HEALED_SECONDS, IDLE_SECONDS = 6_000.0, 900.0
"""By then everybody has run; for so long at most an idle cluster may leave somebody waiting who could start."""
_STALE_SECONDS = 20.0
_QUEUES = (
    (),
    (Queue("a"), Queue("b", minimum=0.4)),
    (Queue("a", weight=3.0), Queue("b"), Queue("c", fifo=True)),
    (Queue("p", minimum=0.5), Queue("a", parent="p"), Queue("b", parent="p"), Queue("c")),
)


def calm(random, size):
    """While nothing goes wrong, kube-scheduler takes every pod where it was promised, and everybody runs."""
    cluster = Cluster(random, size, calm=True, inputs=False)
    cluster.play()
    cluster.heal()


def reads(random, size):
    """So it is where pods read their input, from disks and over links that have only so much."""
    cluster = Cluster(random, size, calm=True, inputs=True)
    cluster.play()
    cluster.heal()


def churn(random, size):
    """Whatever goes wrong, nothing is lost, released twice or over-allocated, and in the end everybody runs."""
    cluster = Cluster(random, size)
    cluster.play()
    cluster.heal()


class Pipe:
    """News of one kind of object on its way to the process: in order, `late` by seconds, lost while `broken`."""

    def __init__(self, listed):
        self.listed, self.news, self.late, self.broken, self.broken_since = listed, deque(), 0.0, 0.0, None

    def put(self, event, now):
        if not self.broken:
            self.news.append((now + self.late, event))

    def fail(self, now, seconds):
        self.news.clear()
        self.broken, self.broken_since = now + seconds, self.broken_since or now

    def take(self, now):
        """Return what arrives; after a break that is a list of everything."""
        if self.broken and now >= self.broken:
            self.broken, self.broken_since = 0.0, None
            return [self.listed()]
        arrived = []
        while not self.broken and self.news and self.news[0][0] <= now:
            arrived.append(self.news.popleft()[1])
        return arrived


class Cluster(ReclaimScene):
    """`real` is the true time, `skew` what the process' wall clock is off; `left` are tasks that have not ended well.

    `offers` and `requests` are what kube-scheduler counts, by node and pod. `trouble` holds the odds of each kind of
    trouble a second.
    """

    def __init__(self, random, size, *, calm=False, inputs=None):
        self.random, self.calm, self.size = random, calm, size
        self.real, self.skew, self.serial = 1_000.0, 0.0, 0
        self.there, self.offers, self.trees, self.requests = {}, {}, {}, {}
        self.nodes_pipe, self.pods_pipe = Pipe(self.nodes_listed), Pipe(self.pods_listed)
        self.scheduler_down = self.not_leading = self.writes_fail = 0.0
        self.odds_of_failure, self.slow_writers, self.queued = 0.0, False, deque()
        self.tasks, self.left, self.ends, self.dies, self.first_seen = {}, set(), {}, {}, {}
        self.tried, self.bound_at, self.healed, self.able = set(), 0.0, False, {}
        self.broken = {}  # by job: how kube-scheduler never binds its pods
        self.served = Ledger(in_flight_seconds=15.0)
        self.uses_inputs, self.uses_io = random.random() < 0.4 if inputs is None else inputs, random.random() < 0.4
        self.uses_gangs, self.uses_gpus = random.random() < 0.4, random.random() < 0.4
        self.uses_priorities = not calm and random.random() < 0.4
        queues = random.choice(_QUEUES)
        self.queue_names = [queue.name for queue in queues if queue.name != "p"] or ["x", "y"]
        kinds = ("node", "cordon", "shrink", "watch", "late", "restart", "lease", "clock", "writes", "scheduler")
        kinds += ("delete", "foreign", "evict", "gate", "budget", "slow", "broken")
        busy = random.sample(kinds, random.randint(0, 5)) if not calm else ()
        self.trouble = {kind: random.choice((0.02, 0.1, 0.3)) for kind in busy}
        self.halves_gangs = not {"writes", "lease", "delete", "evict", "node"}.isdisjoint(busy)
        timeouts = Timeouts(20.0, 10.0, 600.0) if not calm and random.random() < 0.4 else Timeouts()
        scale_up = 30.0 if not calm and random.random() < 0.2 else 0.0
        super().__init__(
            timeouts=timeouts,
            queues=queues,
            pace=Pace(random.choice((1, 4, 64)), scale_up_after=scale_up),
            policy=Policy(locality_waits=random.choice(((), (), (5.0,), (10.0, 5.0)))),
            levels=("rack",),
        )
        for number in range(random.randint(1, 1 + size // 2)):
            self.add_node(f"n{number}", number)
        self.original = dict(self.trees["nodes"])

    # -- what there is

    def now_and_tell(self, seconds):
        self.real += seconds
        self.now = self.real + self.skew

    def flight_time(self):
        return self.real

    def nodes_listed(self):
        return NodesListed(list(self.there.values()))

    def pods_listed(self):
        return PodsListed(list(self.pods.values()))

    def apply(self, event):
        """Let everybody hear of what is so now: kube-scheduler's side at once, the process through its watches."""
        self.served.apply(event)
        pipe = self.nodes_pipe if isinstance(event, NodeSeen | NodeGone | NodesListed) else self.pods_pipe
        pipe.put(event, self.real)

    def deliver(self):
        for pipe in (self.nodes_pipe, self.pods_pipe):
            for event in pipe.take(self.real):
                Scene.apply(self, event)
                if self.random.random() < 0.05:
                    Scene.apply(self, event)

    def restart(self):
        """Start a new process: with a new ledger and backlog, from a list."""
        self.ledger, self.backlog = Ledger(in_flight_seconds=15.0), Backlog([OURS], queues=self.queues)
        self.queued.clear()
        for pipe in (self.nodes_pipe, self.pods_pipe):
            pipe.news.clear()
            pipe.broken, pipe.broken_since = 0.0, None
            Scene.apply(self, pipe.listed())
        self.start()

    def add_node(self, name, number):
        random = self.random
        offers = {
            "cpu": random.choice((2, 4, 8)) * 1000,
            "memory": random.choice((4, 8)),
            "pods": random.choice(POD_LIMITS),
        }
        if self.uses_gpus and random.random() < GPU_ODDS:
            offers[GPU] = random.choice((1, 2))
        rates = {"disk-read": 100, "network-in": 100, "network-out": 100} if self.uses_io or self.uses_inputs else None
        tree = {
            "metadata": {
                "name": name,
                "labels": {"rack": f"r{number // 2}", "disk": random.choice(("ssd", "hdd"))},
                "annotations": {"dovetail.dev/capacity": json.dumps(rates)} if rates else None,
            },
            "spec": {},
            "status": {"allocatable": _quantities(offers)},
        }
        self.offer(name, tree)

    def offer(self, name, tree):
        """Let there be a node as the tree says."""
        self.trees.setdefault("nodes", {})[name] = tree
        allocatable = tree["status"]["allocatable"]
        self.offers[name] = {it: int(text.removesuffix("m").removesuffix("Gi")) for it, text in allocatable.items()}
        self.there[name] = node_from(_decoded(tree, NodeObject), ())
        self.apply(NodeSeen(self.there[name]))

    def take_away(self, name):
        del self.there[name]
        self.apply(NodeGone(name))
        for it in list(self.pods.values()):
            if it.node == name and not it.finished:
                self.dies[it.name] = self.real + self.random.choice((0.0, 5.0))

    # -- pods and who makes them

    def create(self, task, tree):
        """Make a pod of a task: its first or, as the last one failed or went, another."""
        self.serial += 1
        name = f"{task}-{self.serial}"
        tree = json.loads(json.dumps(tree))
        tree["metadata"] |= {"name": name, "uid": f"uid-{name}", "resourceVersion": str(self.serial)}
        tree["metadata"]["creationTimestamp"] = (
            f"1970-01-01T00:{int(self.real) // 60 % 60:02}:{int(self.real) % 60:02}Z"
        )
        self.trees[name], self.tasks[name] = tree, task
        self.requests[name] = {
            it: _number(text) for it, text in tree["spec"]["containers"][0]["resources"]["requests"].items()
        }
        self.requests[name]["pods"] = 1
        if self.healed and OTHER_GATE in str(tree):
            tree["spec"]["schedulingGates"] = [{"name": HOLD_GATE}]
        made = replace(pod_from(_decoded(tree, PodObject)), created=self.real)
        self.left.add(task)
        self.see(made)

    def arrive(self):
        """Let a job come: a few pods alike, perhaps a gang, perhaps one that can never run."""
        random = self.random
        self.serial += 1
        job, count = f"j{self.serial}", random.choice((1, 1, 2, 3, 4))
        requests = {"cpu": f"{random.choice((250, 500, 1000, 2000))}m", "memory": f"{random.choice((0, 1, 2))}Gi"}
        if self.uses_gpus and random.random() < 0.4:
            requests[GPU] = random.choice(("1", "1", "2"))
        if random.random() < 0.05:
            requests["cpu"] = "64000m"
        if "broken" in self.trouble and random.random() < 0.4:
            self.broken[job] = random.choice(("errs", "refused", "silent"))
        labels = {"dovetail.dev/queue": random.choice(self.queue_names), "dovetail.dev/job": job}
        annotations, owner = {}, random.choice(("ReplicaSet", "ReplicaSet", ""))
        if self.uses_inputs and random.random() < 0.5:
            # Of several nodes nobody says which is read: a plan takes it from one, the ledger evenly from all.
            most = 1 if self.calm else min(2, len(self.there) + 1)
            holders = random.sample([*self.there, "gone"], random.choice((1, most)))
            annotations["dovetail.dev/input"] = json.dumps(dict.fromkeys(holders, "1Gi"))
        if self.uses_io or self.uses_inputs:
            rates = {"disk-read": random.choice((0, 30, 60)), "network-in": random.choice((0, 0, 20))}
            annotations["dovetail.dev/demand"] = json.dumps(rates)
        if self.uses_gangs and random.random() < 0.4:
            least = random.choice((2, 2, 3))
            count = max(count, least) if random.random() < 0.9 else least - 1
            requests |= {"cpu": "250m", "memory": "0Gi"}
            labels |= {
                "scheduling.x-k8s.io/pod-group": job,
                "pod-group.scheduling.sigs.k8s.io/min-available": str(least),
            }
            owner = "ReplicaSet"  # whoever makes a pod again owns it
        gates = [HOLD_GATE] + ([OTHER_GATE] if "gate" in self.trouble and random.random() < 0.3 else [])
        spec = {
            "schedulerName": OURS,
            "priority": random.choice((0, 0, 5, 9)) if self.uses_priorities else 0,
            "preemptionPolicy": random.choice((None, None, "Never")),
            "schedulingGates": [{"name": gate} for gate in gates],
            "nodeSelector": {"disk": random.choice(("ssd", "hdd"))} if random.random() < 0.15 else None,
            "containers": [{"name": "c", "resources": {"requests": requests}}],
        }
        meta = {"namespace": "default", "labels": labels, "annotations": annotations}
        meta["ownerReferences"] = [{"uid": f"o-{job}", "kind": owner, "controller": True}] if owner else None
        for number in range(count):
            self.create(f"{job}.{number}", {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})

    def lose(self, name, *, again=True):
        """Let a pod go for good; its controller makes another while its task has not ended."""
        task, ended = self.tasks[name], self.pods[name].finished and not self.pods[name].failed
        self.remove(name)
        self.ends.pop(name, None)
        self.dies.pop(name, None)
        if not again:
            self.left.discard(task)
        elif not ended:
            self.create(task, self.trees[name])

    def remove(self, name):
        self.apply(PodGone(self.pods.pop(name).uid))

    def kubelets(self):
        """End what has run long enough, mostly well, and what was told to go."""
        for name, at in list(self.ends.items()):
            if at <= self.real:
                failed = not self.calm and self.random.random() < 0.05
                del self.ends[name]
                self.change(name, finished=True, failed=failed)
                if not failed:
                    self.left.discard(self.tasks[name])
                if failed or not self.pods[name].identity.group:
                    self.dies[name] = self.real + self.random.choice((0.0, 10.0))
        for name, at in list(self.dies.items()):
            if at <= self.real and name in self.pods:
                self.lose(name)

    # -- kube-scheduler

    def schedule(self):
        """Take each waiting pod in kube-scheduler's order: by priority, then by when it was first seen."""
        waiting = [it for it in self.pods.values() if not it.gates and it.waits]
        for it in waiting:
            self.first_seen.setdefault(it.name, self.real)
        for it in sorted(waiting, key=lambda it: (-it.priority, self.first_seen[it.name])):
            if it.name in self.pods:
                self._try(self.pods[it.name])

    def _try(self, pod):
        match self.broken.get(self._job(pod.name)):
            case "errs":
                if not pod.errored or pod.nominated is not None:
                    self.change(pod.name, errored=True, nominated=None)
                return
            case "refused":
                if not pod.unschedulable:
                    self.change(pod.name, unschedulable=True)
                return
            case "silent":
                return
        ours = pod.nominated is not None and pod.nominated == pod.promised
        first = pod.name not in self.tried
        self.tried.add(pod.name)
        rest = [name for name in self.there if name != pod.nominated]
        self.random.shuffle(rest)
        passed = judge(self.served.snapshot(self.real), pod).passed
        rows = self.served.snapshot(self.real).layout.rows
        for name in [pod.nominated, *rest] if pod.nominated in self.there else rest:
            if self.fits(pod, name) and passed[rows[name]]:
                self.bound_at = self.real
                self.ends[pod.name] = self.real + self.random.choice((2.0, 8.0, 25.0))
                self.change(pod.name, node=name, unschedulable=False, started=self.real)
                return
            if self.calm and ours and first and name == pod.nominated:
                why = "kube-scheduler" if not self.fits(pod, name) else "our filter"
                raise Broken(f"{why} refuses what was promised", self.words(pod))
        if not pod.unschedulable:
            self.change(pod.name, unschedulable=True)
        if pod.may_preempt and self.pods[pod.name].nominated is None:
            self._preempt(self.pods[pod.name])

    def _preempt(self, pod):
        for name in self.there:
            there = [it for it in self.on(name) if it.priority < pod.priority and not it.leaving]
            if there and self.fits(pod, name, [it for it in self.pods.values() if it not in there]):
                for it in there:
                    self.change(it.name, leaving=True)
                    self.dies[it.name] = self.real + 3.0
                self.change(pod.name, nominated=name)
                return

    def fits(self, pod, name, among=None):
        """Say whether kube-scheduler's own plugins let a pod go to a node; what is not advertised is 0 there."""
        if not self.there[name].allows(pod.constraints):
            return False
        others = self.pods.values() if among is None else among
        counted = [it for it in others if (it.node == name and not it.finished) or _counts_as_nominated(it, pod, name)]
        return all(
            amount == 0
            or sum(self.requests[it.name].get(what, 0) for it in counted) + amount <= self.offers[name].get(what, 0)
            for what, amount in self.requests[pod.name].items()
        )

    def on(self, name):
        return [it for it in self.pods.values() if it.node == name and not it.finished]

    def could_run(self, name):
        """Say whether a pod, or its gang, fits an empty cluster by what kube-scheduler and our filter count."""
        pod, empty, placed = self.pods[name], Ledger(in_flight_seconds=1.0), []
        empty.apply(self.nodes_listed())
        for number in range(max(pod.identity.least, 1) if pod.waits else 0):
            for where in sorted(self._sure_places(pod), key=lambda it: -self.offers[it]["cpu"]):
                copy = replace(pod, uid=f"{number}", nominated=None, node=where)
                empty.apply(PodSeen(copy))
                look = empty.snapshot(0.0)
                if (look.allocated <= look.layout.capacity).all() and self.fits(copy, where, placed):
                    placed.append(copy)
                    break
                empty.apply(PodGone(copy.uid))
        return pod.waits and len(placed) >= max(pod.identity.least, 1)

    def _sure_places(self, pod):
        """Return the nodes; of a gang that reads, those that hold its input: how others would share disks is unsure."""
        holders = [name for name, _ in pod.inputs if name in self.there]
        return holders if holders and pod.identity.least > 1 else self.there

    # -- what the process writes

    def run_soon(self, write):
        if self.slow_writers:
            self.queued.append(write)
        else:
            write()

    def nominate(self, pod, where):
        known = self._meant(pod)
        self._unless_changed(known, pod)
        require(known.gates or known.unschedulable, "a pod is nominated that has its turn", lambda: self.words(pod))
        self._write(lambda: self.change(pod.name, nominated=where, promised=where))

    def release(self, pod):
        known = self._meant(pod)
        heard = self.backlog.pod(pod.uid)
        if known.gates != (HOLD_GATE,):
            done = heard is not None and not heard.gates and not self.slow_writers
            require(not done, "a pod is released twice", lambda: self.words(pod))
            raise ClusterError("422: the gate is not the only one")
        self._require_whole(known)
        self._write(lambda: self.change(pod.name, gates=()))

    def _require_whole(self, pod):
        """Of a gang the first goes only when enough of it have been promised a node, or have gone before."""
        group, least = pod.identity.group, pod.identity.least
        if group and not self.halves_gangs:
            gone = [it for it in self.pods.values() if it.identity.group == group and (it.promised or not it.gates)]
            require(len(gone) >= least, "a gang starts in part", lambda: self.words(pod))

    def clear(self, pod):
        known = self._meant(pod)
        self._unless_changed(known, pod)
        nominated = None if known.nominated == known.promised else known.nominated
        self._write(lambda: self.change(pod.name, nominated=nominated, promised=None))

    def evict(self, pod):
        known = self.pods.get(pod.name)
        if known is None or known.uid != pod.uid:
            return True
        if pod.name in self.protected:
            return False
        self._write(lambda: None)
        require(known.owner, "a pod without a controller is evicted", lambda: self.words(pod))
        if not known.leaving:
            self.change(pod.name, leaving=True)
            self.dies[pod.name] = self.real + self.random.choice((0.0, 2.0, 30.0))
        return True

    def tell(self, pod, reason, message):
        self._write(lambda: None)

    def note_release(self, turn, node, waited):
        require(waited >= 0, "a wait is negative", str(waited))

    def _meant(self, pod):
        known = self.pods.get(pod.name)
        if known is None or known.uid != pod.uid:
            raise ClusterError("404: the pod is gone")
        return known

    def _unless_changed(self, known, pod):
        if known.resource_version != pod.resource_version:
            raise ClusterError("409: the pod has changed")

    def _write(self, write):
        """Write, unless that fails; some of what fails has been written all the same."""
        fails = self.real < self.writes_fail and self.random.random() < self.odds_of_failure
        if not fails or self.random.random() < 0.3:
            write()
        if fails:
            raise ClusterError("503: try again")

    # -- the course of a scene

    def play(self):
        """Let jobs come and things go wrong for a while."""
        for _ in range(4 + 2 * self.size):
            if self.random.random() < 0.4:
                self.arrive()
            for kind, odds in self.trouble.items():
                if self.random.random() < odds:
                    getattr(self, f"_{kind}")()
            self.turn(self.random.choice((0.3, 1.0, 1.0, 4.0)))
            if self.random.random() < 0.1:
                self.require_reasons()

    def turn(self, seconds):
        """Let some time pass: everybody does what is due."""
        self.now_and_tell(seconds)
        self.kubelets()
        if self.real >= self.scheduler_down:
            self.schedule()
        self.deliver()
        self._process()
        for _ in range(self.random.randint(0, len(self.queued))):
            self.queued.popleft()()
        self.deliver()
        if self.calm:
            look = self.served.snapshot(self.real)
            require((look.allocated <= look.layout.capacity).all(), "a node is over-allocated", self.words)

    def _process(self):
        """Let the process do one step, as `control` does."""
        self.leading = self.real >= self.not_leading
        since = [pipe.broken_since for pipe in (self.nodes_pipe, self.pods_pipe) if pipe.broken_since is not None]
        if self.leading and not (since and self.real - min(since) > _STALE_SECONDS):
            self.reclaimer.step(self.now)
            self.releaser.step(self.now)
        else:
            self.reclaimer.rest(self.now)
            self.releaser.rest(self.now)

    def heal(self):
        """Put everything right, and wait until everybody has run who can."""
        self.trouble, self.protected, self.slow_writers, self.healed = {}, set(), False, True
        self.scheduler_down = self.not_leading = self.writes_fail = 0.0
        while self.queued:
            self.queued.popleft()()
        for pipe in (self.nodes_pipe, self.pods_pipe):
            pipe.late, pipe.news = 0.0, deque((0.0, event) for _, event in pipe.news)
            if pipe.broken:
                pipe.broken = self.real
        for name, tree in self.original.items():
            self.offer(name, tree)
        for it in list(self.pods.values()):
            if OTHER_GATE in it.gates:
                self.change(it.name, gates=tuple(gate for gate in it.gates if gate != OTHER_GATE))
        began, pause, before = self.real, 1.0, None
        self.bound_at = max(self.bound_at, began)
        while self.real - began < HEALED_SECONDS and (self.waited_for() or self.ends or self.dies):
            self.turn(pause)
            state = (len(self.ends), len(self.dies), sum(not it.gates for it in self.pods.values()))
            due = min([*self.ends.values(), *self.dies.values()], default=float("inf")) - self.real
            longest = 15.0 if self.broken else 60.0  # a turn of one that is refused keeps room from step to step
            pause = 1.0 if state != before else max(min(pause * 2.0, due, longest), 1.0)
            before = state
            if self.ends or self.dies:
                self.bound_at = self.real
            idle = not self.broken and self.real - self.bound_at > IDLE_SECONDS
            require(not idle, "somebody waits for ever on an empty cluster", self.words)
        require(not self.waited_for(), "somebody waits for ever", self.words)
        self.turn(1.0)
        self.require_reasons()
        self.require_books()

    def waited_for(self):
        """Return the pods that are still to end, and can."""
        waiting = [
            name
            for name, it in self.pods.items()
            if it.waits and self.tasks[name] in self.left and self._job(name) not in self.broken
        ]
        return [name for name in waiting if self._is_whole(name) and self._could_run(name)]

    def _job(self, name):
        return self.tasks[name].partition(".")[0]

    def _could_run(self, name):
        """Say whether a pod could run, as was found once for its task: the nodes stay as they are from now on."""
        task = self.tasks[name]
        if task not in self.able:
            self.able[task] = self.could_run(name)
        return self.able[task]

    def _is_whole(self, name):
        """Say whether enough pods of a gang are there for it to start, now or before."""
        group, least = self.pods[name].identity.group, self.pods[name].identity.least
        return not group or sum(it.identity.group == group and not it.failed for it in self.pods.values()) >= least

    def require_reasons(self):
        """Every held pod that the process knows has a reason."""
        why = self.view().why
        for it in self.pods.values():
            known = self.backlog.pod(it.uid)
            if it.held and known is not None and known.held:
                require(it.uid in why, "a held pod has no reason", lambda it=it: self.words(it))

    def require_books(self):
        """The process' books are those of a fresh list."""
        ledger, backlog = Ledger(in_flight_seconds=15.0), Backlog([OURS], queues=self.queues)
        for event in (self.nodes_listed(), self.pods_listed()):
            ledger.apply(event)
            backlog.apply(event, self.now)
        ours, theirs = self.ledger.snapshot(self.real), ledger.snapshot(self.real)
        same = ours.layout.names == theirs.layout.names and (ours.allocated == theirs.allocated).all()
        require(same, "the ledger is not that of a fresh list", self.words)
        require(lines(self.backlog) == lines(backlog), "the backlog is not that of a fresh list", self.words)

    # -- troubles

    def _node(self):
        name = self.random.choice(sorted(self.original))
        if name in self.there:
            self.take_away(name)
        else:
            self.offer(name, self.original[name])

    def _cordon(self):
        name = self.random.choice(sorted(self.original))
        taints = self.random.choice(([], [{"key": "t", "effect": "NoSchedule"}]))
        self._offer_changed(name, spec={"unschedulable": self.random.random() < 0.5, "taints": taints})

    def _shrink(self):
        name = self.random.choice(sorted(self.original))
        allocatable = dict(self.original[name]["status"]["allocatable"])
        allocatable["cpu"] = f"{self.random.choice((0, 1000, 4000))}m"
        if self.random.random() < 0.3:
            allocatable.pop(GPU, None)
        self._offer_changed(name, status={"allocatable": allocatable})

    def _offer_changed(self, name, **parts):
        if name in self.there:
            self.offer(name, self.original[name] | parts)

    def _watch(self):
        pipe = self.random.choice((self.nodes_pipe, self.pods_pipe))
        pipe.fail(self.real, self.random.choice((1.0, 10.0, 40.0)))

    def _late(self):
        self.random.choice((self.nodes_pipe, self.pods_pipe)).late = self.random.choice((0.0, 0.5, 5.0, 20.0))

    def _restart(self):
        self.restart()

    def _lease(self):
        self.not_leading = self.real + self.random.choice((1.0, 20.0))

    def _clock(self):
        self.skew += self.random.choice((-7_200.0, -60.0, -1.0, 1.0, 60.0, 7_200.0))

    def _writes(self):
        self.writes_fail = self.real + self.random.choice((1.0, 10.0, 60.0))
        self.odds_of_failure = self.random.choice((0.1, 0.5, 1.0))

    def _scheduler(self):
        self.scheduler_down = self.real + self.random.choice((1.0, 10.0, 60.0))

    def _broken(self):
        """Jobs whose pods kube-scheduler never binds arrive, and stay: each try is an error, a refusal, or is none."""

    def _delete(self):
        waiting = [name for name, it in self.pods.items() if not it.identity.group]
        if waiting:
            self.lose(self.random.choice(waiting), again=False)

    def _evict(self):
        """Somebody else evicts a running pod."""
        running = [name for name, it in self.pods.items() if it.node and not it.finished and it.owner]
        if running:
            name = self.random.choice(running)
            self.change(name, leaving=True)
            self.dies[name] = self.real + 2.0

    def _foreign(self):
        """Another scheduler's pod takes room, where there is some, without asking anybody."""
        if not self.there:
            return
        self.serial += 1
        task, where = f"foreign{self.serial}", self.random.choice(sorted(self.there))
        requests = {"cpu": "500m", "memory": "1Gi"}
        spec = {"schedulerName": "other", "containers": [{"name": "c", "resources": {"requests": requests}}]}
        self.create(task, {"metadata": {"namespace": "default"}, "spec": spec, "status": {}})
        name = next(reversed(self.pods))
        if self.fits(self.pods[name], where):
            self.change(name, node=where, started=self.real)
            self.ends[name] = self.real + 20.0
        else:
            self.lose(name, again=False)

    def _gate(self):
        gated = [name for name, it in self.pods.items() if OTHER_GATE in it.gates]
        if gated:
            name = self.random.choice(gated)
            self.change(name, gates=tuple(gate for gate in self.pods[name].gates if gate != OTHER_GATE))

    def _budget(self):
        self.protected = {name for name in self.pods if self.random.random() < 0.3}

    def _slow(self):
        self.slow_writers = self.random.random() < 0.7

    # -- words

    def words(self, pod=None):
        """Return the scene in a line or two."""
        where = [pod] if pod else [self.pods[name] for name in self.waited_for()]
        pods = [
            f"{it.name} of {it.identity.queue} {self.requests[it.name]} gates {len(it.gates)} on {it.node} nominated "
            f"{it.nominated} promised {it.promised} refused {it.unschedulable} priority {it.priority} group "
            f"{it.identity.group}/{it.identity.least} inputs {[name for name, _ in it.inputs]}"
            for it in where[:4]
        ]
        return f"{len(where)} pods: {'; '.join(pods)}; nodes {self.offers}; trouble {sorted(self.trouble)}"


def _counts_as_nominated(other, pod, name):
    waits = other.nominated == name and other.waits and other.name != pod.name
    return waits and other.priority >= pod.priority and not other.gates


def _decoded(tree, kind):
    return msgspec.json.decode(json.dumps(tree), type=kind)


def _quantities(amounts):
    units = {"cpu": "m", "memory": "Gi"}
    return {name: f"{amount}{units.get(name, '')}" for name, amount in amounts.items()}


def _number(text):
    return int(text.removesuffix("m").removesuffix("Gi"))
