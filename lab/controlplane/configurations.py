"""The KubeSchedulerConfigurations that runs compare: the stock scheduler's, and the one that the chart ships."""

from typing import Any


def stock_configuration() -> dict[str, Any]:
    """Return kube-scheduler's defaults with the client's rate raised, which would else hold it to 50 pods a second."""
    return {"clientConnection": {"qps": 500, "burst": 1000}}


def dovetail_configuration(url: str) -> dict[str, Any]:
    """Return the KubeSchedulerConfiguration that the chart ships (a test compares them), for an extender at `url`."""
    disabled = ("NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality")
    plugins = {"score": {"disabled": [{"name": name} for name in disabled]}}
    return {
        **stock_configuration(),
        "parallelism": 16,
        "percentageOfNodesToScore": 2,
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 10,
        "profiles": [{"schedulerName": "default-scheduler", "plugins": plugins}],
        "extenders": [
            {
                "urlPrefix": url,
                "filterVerb": "filter",
                "prioritizeVerb": "prioritize",
                "preemptVerb": "preempt",
                "weight": 1,
                "httpTimeout": "5s",
                "nodeCacheCapable": True,
                "ignorable": False,
            }
        ],
    }
