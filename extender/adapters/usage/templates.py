"""PromQL templates: what is asked of Prometheus for one dimension, unless settings say something else.

Units are cores, bytes and bytes per second. A template for nodes gives one series for each node, one for pods gives one
for each pod. What templates may hold:

`$window`    the window of rates, such as 60s
`$matchers`  what settings add to each selector, to be written last; may be nothing
`$node`      the labels that say which node a series is of, for `by (...)`
`$pods`      which pods are asked about; only for pods

Each device counts once. Names of devices are listed by what they are: hardware. What lies on top (dm, md, loop, bonds,
bridges, VLANs, veth) would count the same bytes again. Devices with unknown names are not counted at all: then there is
no series, which is not the same as 0.
"""

from collections.abc import Mapping
from types import MappingProxyType

from extender.cluster.resources import CPU, DIMENSIONS, DISK_READ, DISK_WRITE, MEMORY, NETWORK_IN, NETWORK_OUT

TIME = "time"
"""What gives the time of the newest raw sample, beside the dimensions."""

NAMES = (*DIMENSIONS, TIME)

PRESSURE = "cpu-pressure"
"""For which part of the time a pod waits for CPU. Only for pods, and only asked where evictions go by it."""

_DISKS = "(sd|hd|vd|xvd|dasd)[a-z]+|nvme[0-9]+n[0-9]+|mmcblk[0-9]+|(nbd|rbd|pmem|sr)[0-9]+"
"""Whole disks; neither partitions nor what is made of disks."""

_CARDS = "(eth|em)[0-9]+|en[a-z0-9]+|enX[0-9]+|p[0-9]+p[0-9]+|ib[a-z0-9]+|wl[a-z0-9]+"
"""Network cards. `enP...` are left out: in Azure they carry what eth0 counts already."""

_VIRTUAL = "(veth|cali|cilium|lxc|cni|cbr|docker|flannel|br-|virbr|vxlan|genev).*"
"""Interfaces that only the host's own network has."""

_IDLE = 'node_cpu_seconds_total{mode="idle",$matchers}'

NODES: Mapping[str, str] = MappingProxyType(
    {
        CPU: (
            'sum without (cpu, mode) (rate(node_cpu_seconds_total{mode!~"idle|iowait",$matchers}[$window]))'
            " / sum without (cpu, mode) (rate(node_cpu_seconds_total{$matchers}[$window]))"
            ' * count without (cpu, mode) (node_cpu_seconds_total{mode="idle",$matchers})'
        ),
        MEMORY: "node_memory_MemTotal_bytes{$matchers} - node_memory_MemAvailable_bytes{$matchers}",
        DISK_READ: f'sum without (device) (rate(node_disk_read_bytes_total{{device=~"{_DISKS}",$matchers}}[$window]))',
        DISK_WRITE: (
            f'sum without (device) (rate(node_disk_written_bytes_total{{device=~"{_DISKS}",$matchers}}[$window]))'
        ),
        NETWORK_IN: (
            f'sum without (device) (rate(node_network_receive_bytes_total{{device=~"{_CARDS}",$matchers}}[$window]))'
        ),
        NETWORK_OUT: (
            f'sum without (device) (rate(node_network_transmit_bytes_total{{device=~"{_CARDS}",$matchers}}[$window]))'
        ),
        TIME: (
            f"max without (cpu, mode) (timestamp({_IDLE}) and"
            f" (last_over_time({_IDLE}[$window] offset $window) or ({_IDLE} unless last_over_time({_IDLE}[$window]))))"
        ),
    }
)
"""The whole node, by node-exporter. `sum without` keeps labels such as that of a replica, so doubles show.

A rate over a window that is not full of samples is too small, and would be taken for idle. So CPU is the busy part of
all CPU time in the window, which has the same samples; and there is no time, which is a node that is not measured,
until there was a sample before the window. Where there is none in the window any more there is: that says how old.
"""

_CONTAINER = 'container!="",container!="POD",$pods,$matchers'


_WORKING_SET = f"container_memory_working_set_bytes{{{_CONTAINER}}}"
"""Each sample has a time of its own, so an instant query finds that of a pod for five minutes after its end."""


def _of_disks(metric: str) -> str:
    devices = f'device=~"(/dev/)?({_DISKS})"'
    return f"sum by (namespace, pod, $node) (rate({metric}{{{devices},{_CONTAINER}}}[$window]))"


def _of_cards(metric: str) -> str:
    """Return the use of a pod's own network; a pod on the host's network shows the host's, so it is left out."""
    cards, host = f'interface=~"{_CARDS}",$pods,$matchers', f'interface=~"{_VIRTUAL}",$pods,$matchers'
    own = f"sum by (namespace, pod, $node) (rate({metric}{{{cards}}}[$window]))"
    return f"{own} unless group by (namespace, pod, $node) ({metric}{{{host}}})"


def _longest(metric: str) -> str:
    return f"max by (namespace, pod, container, $node) (rate({metric}{{{_CONTAINER}}}[$window]))"


_WAITED, _THROTTLED = (
    _longest("container_pressure_cpu_waiting_seconds_total"),
    _longest("container_cpu_cfs_throttled_seconds_total"),
)
"""The kernel counts as waiting also that a container's own CPU limit holds it. Nobody else can end that."""

PODS: Mapping[str, str] = MappingProxyType(
    {
        CPU: f"sum by (namespace, pod, $node) (rate(container_cpu_usage_seconds_total{{{_CONTAINER}}}[$window]))",
        MEMORY: f"sum by (namespace, pod, $node) ({_WORKING_SET} and last_over_time({_WORKING_SET}[$window]))",
        DISK_READ: _of_disks("container_fs_reads_bytes_total"),
        DISK_WRITE: _of_disks("container_fs_writes_bytes_total"),
        NETWORK_IN: _of_cards("container_network_receive_bytes_total"),
        NETWORK_OUT: _of_cards("container_network_transmit_bytes_total"),
        TIME: f"max by (namespace, pod, $node) (timestamp(container_cpu_usage_seconds_total{{{_CONTAINER}}}))",
        PRESSURE: f"max by (namespace, pod, $node) (clamp_min({_WAITED} - {_THROTTLED}, 0) or {_WAITED})",
    }
)
"""Pods, by the kubelet's cAdvisor. `container_pressure_...` (PSI, "some") needs Kubernetes 1.34 and cgroup v2."""
