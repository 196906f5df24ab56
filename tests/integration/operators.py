"""What operators make of the custom resources in `examples/`: pods, and for a JobSet the Jobs.

No operator runs in the tests. These functions follow the operators' own code, at the versions that
`lab/controlplane/tools/crds` pins, and Spark's documentation, as far as Dovetail or the API server reads the result:
labels, annotations, the owner, resources, gates and the scheduler's name. Each takes the resource as the API server
returned it.
"""

import copy

import yaml

INIT = {
    "name": "wait-gcs-ready",
    "image": "rayproject/ray:2.46.0",
    "resources": {name: {"cpu": "200m", "memory": "256Mi"} for name in ("requests", "limits")},
}
"""What KubeRay puts before the container of a worker."""


def spark_pods(application):
    """Return the driver and the executors.

    Spark requests the cores, and the memory plus its overhead: a tenth of it, at least 384 MiB.
    """
    metadata, spec = application["metadata"], application["spec"]
    names = [("driver", f"{metadata['name']}-driver")]
    names += [("executor", f"{metadata['name']}-exec-{number + 1}") for number in range(spec["executor"]["instances"])]
    return [_spark_pod(application, role, name) for role, name in names]


def ray_pods(cluster):
    """Return the head and the workers of each group, with the labels that KubeRay gives them."""
    name, spec = cluster["metadata"]["name"], cluster["spec"]
    pods = [_ray_pod(cluster, spec["headGroupSpec"]["template"], f"{name}-head", "head", "headgroup")]
    for group in spec["workerGroupSpecs"]:
        for number in range(group["replicas"]):
            pod_name = f"{name}-{group['groupName']}-worker-{number}"
            pod = _ray_pod(cluster, group["template"], pod_name, "worker", group["groupName"])
            pod["spec"]["initContainers"] = [INIT]
            pods.append(pod)
    return pods


def argo_pods(workflow):
    """Return the pods of all steps: one for each item of a step, with Argo's own containers around the main one."""
    spec = workflow["spec"]
    templates = {template["name"]: template for template in spec["templates"]}
    steps = [step for group in templates[spec["entrypoint"]]["steps"] for step in group]
    return [
        _argo_pod(workflow, templates[step["template"]], number)
        for step in steps
        for number, _ in enumerate(step.get("withItems", [None]))
    ]


def jobset_jobs(jobset):
    """Return the Jobs of a JobSet; the names of the set and of the replicated job stand on them and on their pods."""
    jobs = []
    for replicated in jobset["spec"]["replicatedJobs"]:
        for number in range(replicated["replicas"]):
            labels = {
                "jobset.sigs.k8s.io/jobset-name": jobset["metadata"]["name"],
                "jobset.sigs.k8s.io/jobset-uid": jobset["metadata"]["uid"],
                "jobset.sigs.k8s.io/replicatedjob-name": replicated["name"],
                "jobset.sigs.k8s.io/job-index": str(number),
            }
            job = copy.deepcopy(replicated["template"])
            pod_metadata = job["spec"]["template"].setdefault("metadata", {})
            pod_metadata["labels"] = {**pod_metadata.get("labels", {}), **labels}
            name = f"{jobset['metadata']['name']}-{replicated['name']}-{number}"
            job |= {"apiVersion": "batch/v1", "kind": "Job", "metadata": _metadata(jobset, name, labels)}
            jobs.append(job)
    return jobs


def _spark_pod(application, role, name):
    part, metadata = application["spec"][role], application["metadata"]
    labels = {
        "spark-role": role,
        "spark-app-selector": f"spark-{metadata['uid'].replace('-', '')}",
        "spark-app-name": metadata["name"],
        "sparkoperator.k8s.io/app-name": metadata["name"],
        "sparkoperator.k8s.io/launched-by-spark-operator": "true",
    }
    pod_spec = copy.deepcopy(part["template"]["spec"])
    (container,) = pod_spec["containers"]
    memory = _mebibytes(part["memory"])
    memory += max(memory // 10, 384)
    container["image"] = application["spec"]["image"]
    container["resources"] = {
        "requests": {"cpu": str(part["cores"]), "memory": f"{memory}Mi"},
        "limits": {"memory": f"{memory}Mi"},
    }
    pod_spec["restartPolicy"] = "Never"
    labels = {**part.get("labels", {}), **labels}
    return _pod(_metadata(application, name, labels, part.get("annotations", {})), pod_spec)


def _ray_pod(cluster, template, name, node_type, group):
    metadata = template.get("metadata", {})
    labels = {
        "ray.io/is-ray-node": "yes",
        "ray.io/identifier": f"{cluster['metadata']['name']}-{node_type}",
        "app.kubernetes.io/name": "kuberay",
        "app.kubernetes.io/created-by": "kuberay-operator",
        **metadata.get("labels", {}),
        "ray.io/cluster": cluster["metadata"]["name"],
        "ray.io/node-type": node_type,
        "ray.io/group": group,
    }
    return _pod(_metadata(cluster, name, labels, metadata.get("annotations", {})), copy.deepcopy(template["spec"]))


def _argo_pod(workflow, template, number):
    name, spec = workflow["metadata"]["name"], workflow["spec"]
    own = {"labels": {"workflows.argoproj.io/workflow": name, "workflows.argoproj.io/completed": "false"}}
    parts = (own, spec.get("podMetadata", {}), template.get("metadata", {}))
    labels, annotations = (
        {key: value for part in parts for key, value in part.get(field, {}).items()}
        for field in ("labels", "annotations")
    )
    argo = {"image": "registry.example.com/argoexec:v3.7.3"}
    pod_spec = {
        "restartPolicy": "Never",
        "schedulerName": spec["schedulerName"],
        "initContainers": [{"name": "init", **argo}],
        "containers": [{"name": "wait", **argo}, {"name": "main", **copy.deepcopy(template["container"])}],
        **yaml.safe_load(spec["podSpecPatch"]),
    }
    return _pod(_metadata(workflow, f"{name}-{template['name']}-{number}", labels, annotations), pod_spec)


def _pod(metadata, spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _metadata(owner, name, labels, annotations=None):
    reference = {key: owner[key] for key in ("apiVersion", "kind")}
    reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
    return {
        "name": name,
        "namespace": owner["metadata"]["namespace"],
        "labels": dict(labels),
        "annotations": dict(annotations or {}),
        "ownerReferences": [{**reference, "controller": True}],
    }


def _mebibytes(memory):
    """Return an amount of memory as Spark writes it, such as 4g or 512m, in MiB."""
    return int(memory[:-1]) * {"g": 1024, "m": 1}[memory[-1]]
