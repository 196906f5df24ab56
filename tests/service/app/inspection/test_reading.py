"""What the user's commands read of a cluster, with whatever rights."""

from pathlib import Path

import pytest
import yaml

from extender.app.inspection.reading import NotAllowed, Reader, look, settings_of
from extender.errors import ClusterError, SettingsError
from extender.settings import Settings
from tests.service.app.inspection.api_server import (
    BINDINGS,
    CONFIG_MAPS,
    HELD,
    SETTINGS,
    Server,
    binding,
    config_map,
    items,
    server,
)


class TestSettings:
    def test_those_of_the_file_go_before_those_of_the_cluster(self, tmp_path):
        file = tmp_path / "s.yaml"
        file.write_text(SETTINGS)
        told, by = settings_of(Reader(Server()), file)
        assert ([it.name for it in told.queues], by) == (["a"], str(file))

    def test_those_of_the_cluster_are_in_its_config_map(self):
        maps = items(config_map("other", x="y"), config_map("dovetail", **{"dovetail.yaml": SETTINGS}))
        told, by = settings_of(Reader(server(**{CONFIG_MAPS: maps})), None)
        assert ([it.name for it in told.queues], by) == (["a"], "ConfigMap dovetail-system/dovetail")

    @pytest.mark.parametrize(
        ("maps", "why"),
        [
            (None, "you may not (403)"),
            (items(), "there is no ConfigMap labelled app.kubernetes.io/name=dovetail in dovetail-system"),
        ],
    )
    def test_else_they_are_built_in_and_it_says_why(self, maps, why):
        found = settings_of(Reader(server(**{CONFIG_MAPS: maps})), None)
        assert found == (Settings(), f"built-in settings ({why})")

    def test_a_mistake_in_those_of_the_cluster_names_the_config_map(self):
        maps = items(config_map("dovetail", **{"dovetail.yaml": SETTINGS + "nonsense: 1\n"}))
        with pytest.raises(SettingsError, match="ConfigMap dovetail-system/dovetail: nonsense"):
            settings_of(Reader(server(**{CONFIG_MAPS: maps})), None)


class TestRelease:
    """Where Dovetail is, and that nobody else is believed."""

    def told(self, namespace="", **there):
        reader = Reader(server(**there), namespace)
        told, by = settings_of(reader, None)
        return [it.name for it in told.queues], by, reader.unread

    def maps(self, namespace, queue):
        text = SETTINGS.replace("name: a", f"name: {queue}")
        found = items(config_map("dovetail", namespace, **{"dovetail.yaml": text}))
        return {f"/api/v1/namespaces/{namespace}/configmaps": found}

    def test_a_tenants_config_map_with_our_name_and_labels_is_not_read(self):
        there = self.maps("dovetail-system", "real") | self.maps("a-tenant", "forged")
        there["/api/v1/configmaps"] = items(*(it for found in there.values() for it in found["items"]))
        assert self.told(**there) == (["real"], "ConfigMap dovetail-system/dovetail", {})

    def test_it_is_where_the_accounts_are_that_the_cluster_role_bindings_name(self):
        there = self.maps("elsewhere", "real") | {BINDINGS: items(binding("elsewhere"), binding("elsewhere"))}
        assert self.told(**there) == (["real"], "ConfigMap elsewhere/dovetail", {})

    @pytest.mark.parametrize("file", ["scheduler", "existing", "drain"])
    def test_those_of_the_chart_say_so(self, file):
        made = yaml.safe_load_all(Path(f"manifests/{file}.yaml").read_text())
        bindings = [it for it in made if it and it["kind"] == "ClusterRoleBinding"]
        assert bindings
        assert all(it["metadata"]["labels"]["app.kubernetes.io/name"] == "dovetail" for it in bindings)
        reader = Reader(server(**{BINDINGS: items(*bindings)}))
        reader.find_release(otherwise="not there")
        assert reader.namespace == "dovetail-system"

    def test_of_two_releases_one_must_be_named(self):
        there = self.maps("a", "x") | self.maps("b", "y") | {BINDINGS: items(binding("a"), binding("b"))}
        with pytest.raises(ClusterError, match="installed in a and b; say which by --install-namespace"):
            self.told(**there)
        assert self.told("b", **there)[0] == ["y"]

    def test_who_may_not_read_bindings_must_name_it_unless_it_is_in_the_usual_place(self):
        there = {BINDINGS: None, "/api/v1/namespaces/elsewhere/configmaps": items()}
        assert self.told(**there | self.maps("dovetail-system", "real"))[2] == {}
        assert self.told("elsewhere", **there | self.maps("elsewhere", "real"))[2] == {}
        why = {"clusterrolebindings": "you may not (403), so --install-namespace must say where Dovetail is"}
        assert self.told(**there | self.maps("elsewhere", "real"))[2] == why

    def test_a_settings_file_says_where_the_lease_is(self, tmp_path):
        file = tmp_path / "s.yaml"
        file.write_text(SETTINGS + "control: {lease: {namespace: mine}}\n")
        reader = Reader(server())
        settings_of(reader, file)
        assert reader.namespace == "mine"

    def test_without_settings_the_lease_is_in_the_namespace_that_was_named(self):
        there = {"/api/v1/namespaces/mine/configmaps": items()}
        told, _ = settings_of(Reader(server(**there), "mine"), None)
        assert told.control.lease.namespace == "mine"


class TestLook:
    def test_without_nodes_or_pods_there_is_no_order_and_who_needs_it_says_why(self):
        reader = Reader(server(**{"/api/v1/pods": None}))
        seen = look(reader, Settings(), "here")
        assert seen.order is None
        with pytest.raises(NotAllowed, match=r"must be readable for this: pods: you may not \(403\)"):
            seen.require(reader)

    def test_without_jobs_there_is_one_and_what_was_not_read_is_noted(self):
        reader = Reader(server(**{"/apis/batch/v1/jobs": None}))
        assert look(reader, Settings(), "here").require(reader) is not None
        assert reader.unread == {"jobs": "you may not (403)"}

    def test_kinds_of_pod_groups_that_the_cluster_does_not_have_are_no_gap(self):
        reader = Reader(server())
        look(reader, Settings(), "here")
        assert reader.unread == {}

    def test_pods_go_where_their_volumes_are_as_far_as_those_may_be_read(self):
        nodes = [{"metadata": {"name": n, "labels": {"host": n}}, "status": {"allocatable": {"cpu": c}}}
                 for n, c in (("small", "2"), ("large", "8"))]  # fmt: skip
        terms = [{"matchExpressions": [{"key": "host", "operator": "In", "values": ["small"]}]}]
        volume = {"metadata": {"name": "pv"}, "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}}
        there = {
            "/api/v1/nodes": items(*nodes),
            "/api/v1/pods": items(HELD),
            "/api/v1/persistentvolumeclaims": items({"metadata": {"namespace": "d", "name": "data"},
                                                     "spec": {"volumeName": "pv"}}),
            "/api/v1/persistentvolumes": items(volume),
        }  # fmt: skip

        def place(**more):
            reader = Reader(server(**there | more))
            seen = look(reader, Settings(), "here")
            return seen.require(reader).places(seen.pods[0]), reader.unread

        assert place() == ((0, "small"), {})
        unread = {"persistentvolumes": "you may not (403)"}
        assert place(**{"/api/v1/persistentvolumes": None}) == ((0, "large"), unread)
