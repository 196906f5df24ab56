"""The jobs that have pods: which class a pod counts in, how many pods each has, and when each job arrived."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from extender.cluster.events import Event, OwnerSeen, OwnersListed
from extender.cluster.model import Owner, Pod
from extender.control.backlog.owners import Owners
from extender.control.backlog.task_classes import MOST_ENDED, Job, TaskClass, key_of, name_of


class JobTable:
    """Jobs by queue and name. Under the backlog's lock.

    A job arrives with its first pod, or with the first owner of its pods: its first pods may be gone.
    """

    def __init__(self, owners: Owners) -> None:
        self.jobs: dict[tuple[str, str], Job] = {}
        self._owners = owners
        self._jobs_of_owner: dict[str, Counter[Job]] = {}

    def class_of(self, pod: Pod) -> TaskClass:
        """Return the class of a pod, a new one of a new job where there is none."""
        queue, name = pod.identity.queue, pod.identity.job
        job = self.jobs.get((queue, name))
        if job is None:
            job = self.jobs[queue, name] = Job(name, queue, pod.created)
        job.arrived = min(job.arrived, pod.created)
        key = key_of(pod)
        if key not in job.classes:
            template = replace(pod, opportunistic=False) if pod.opportunistic else pod
            job.classes[key] = TaskClass(job, key, template, name_of(pod))
        job.ended.pop(key, None)
        return job.classes[key]

    def add(self, pod: Pod, task_class: TaskClass) -> None:
        """Count a pod in its class and its job."""
        task_class.unfinished += 1
        task_class.job.unfinished += 1
        self._add_owner(pod.owner, task_class.job)

    def remove(self, pod: Pod, task_class: TaskClass) -> None:
        """Count a pod no more; a job without pods is forgotten, and a class without pods that ended long ago."""
        job = task_class.job
        task_class.unfinished -= 1
        job.unfinished -= 1
        self._remove_owner(pod.owner, job)
        if not job.unfinished:
            self.jobs.pop((job.queue, job.name), None)
            job.classes.clear()  # they name their job: else both stay until Python looks for cycles, which is rare
        elif not task_class.unfinished:
            job.ended[task_class.key] = None
            if len(job.ended) > MOST_ENDED:
                oldest = next(iter(job.ended))
                del job.ended[oldest], job.classes[oldest]

    def change_owner(self, before: str, after: str, job: Job) -> None:
        """Note that a pod of a job has another owner now."""
        if before != after:
            self._add_owner(after, job)
            self._remove_owner(before, job)

    def note_arrivals(self, event: Event) -> None:
        """Note that the jobs of these owners arrived no later than the owners were created."""
        match event:
            case OwnerSeen(owner):
                self._note_arrival(owner, self._jobs_of_owner.get(owner.uid, ()))
            case OwnersListed(owners):
                for owner in owners:
                    self._note_arrival(owner, self._jobs_of_owner.get(owner.uid, ()))

    def _note_arrival(self, owner: Owner, jobs: Iterable[Job]) -> None:
        if owner.created > 0:
            for job in jobs:
                job.arrived = min(job.arrived, owner.created)

    def _add_owner(self, uid: str, job: Job) -> None:
        """Count one more pod of an owner, if any, in a job."""
        if not uid:
            return
        self._jobs_of_owner.setdefault(uid, Counter())[job] += 1
        owner = self._owners.by_uid.get(uid)
        if owner is not None:
            self._note_arrival(owner, (job,))

    def _remove_owner(self, uid: str, job: Job) -> None:
        """Count one pod less; an owner's job without pods is forgotten, and an owner without jobs."""
        if not uid:
            return
        jobs = self._jobs_of_owner[uid]
        jobs[job] -= 1
        if not jobs[job]:
            del jobs[job]
            if not jobs:
                del self._jobs_of_owner[uid]
