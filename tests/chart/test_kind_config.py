"""kind-config.yaml and the manifests name the same files and addresses."""

import ipaddress

import yaml

from charts.render import ROOT, SERVICE_ADDRESS

KIND = yaml.safe_load((ROOT / "kind-config.yaml").read_text())
SCHEDULER = yaml.safe_load(KIND["nodes"][0]["kubeadmConfigPatches"][0])["scheduler"]


def test_kube_scheduler_reads_the_rendered_file_through_both_mounts():
    (mount,) = KIND["nodes"][0]["extraMounts"]
    (volume,) = SCHEDULER["extraVolumes"]
    (argument,) = SCHEDULER["extraArgs"]
    folder, _, file = argument["value"].rpartition("/")

    assert argument["name"] == "config"
    assert folder == volume["mountPath"]
    assert volume["hostPath"] == mount["containerPath"]
    assert (ROOT / mount["hostPath"] / file).is_file()


def test_the_fixed_address_is_in_the_clusters_service_range():
    services = ipaddress.ip_network(KIND["networking"]["serviceSubnet"])

    assert ipaddress.ip_address(SERVICE_ADDRESS) in services
    # Kubernetes leaves the first min(max(16, size / 16), 256) addresses of a range to those who ask for one.
    assert int(ipaddress.ip_address(SERVICE_ADDRESS)) - int(services[0]) < 256
