"""The settings file: its defaults, and every kind of mistake by path, value and what is accepted."""

from pathlib import Path

import pytest
import yaml

from extender.cluster.model import CapacityRule
from extender.cluster.queues import Queue, mistakes_of
from extender.errors import SettingsError
from extender.settings import Settings, defaults, document_of, load, parse
from tests.service.costs import lines_of

HEAD = "apiVersion: dovetail.dev/v1alpha1\nkind: DovetailConfiguration\n"

EVERYTHING = (
    HEAD
    + """
server:
  address: 127.0.0.1
  port: 10351
  threads: 8
  maxBodyBytes: 10485760
  keepAliveSeconds: 120
  drainSeconds: 5
placement:
  rule: cosine
  shapeStep: 0.05
  chosenBy: kube-scheduler
  inFlightSeconds: 15
  waitMilliseconds: 500
cluster:
  capacities: []
  staleSeconds: 60
order: auto
control:
  schedulers: [dovetail]
  planMilliseconds: 50
  planSeconds: 3
  unboundPods: 64
  writers: 4
  assumeSeconds: 15
  scaleUpAfterSeconds: 0
  heldEventSeconds: 10
  lease:
    name: dovetail-control
    namespace: dovetail-system
    seconds: 15
    renewSeconds: 10
    retrySeconds: 2
policy:
  rule: dot
  srtf: 1
  rank: 1
  sharing: drf
  kappa: 1
  fairness: 0.25
  barrier: 0.9
  starvedAfterSeconds: 120
  reservable: 0.05
locality:
  levels: []
  waitSeconds: []
  target: 0
  maxWaitSeconds: 30
  remotePenalty: 0.1
  longTaskSeconds: 0
queues: []
undeclaredWeight: 1.0
reclaim:
  fairShareSeconds: 0
  minimumShareSeconds: 0
  evictionsPerMinute: 10
usage:
  url: ""
  metricsApi: false
  intervalSeconds: 15
  windowSeconds: 60
  staleSeconds: 90
  nodeLabels: [node, instance]
  matchers: ""
  nodeQueries: {}
  podQueries: {}
  access:
    tokenFile: ""
    username: ""
    passwordFile: ""
    caFile: ""
    certFile: ""
    keyFile: ""
    headers: {}
  avoidLoad: false
opportunistic:
  enabled: false
  threshold: 0.8
  evictionBudget: 0.01
  evictBy: use
  evictAtCpu: 0.99
  evictAtPressure: 0.1
  evictAtIo: 0.95
  evictAtMemory: 0.95
  evictAfterSamples: 3
  evictionsPerMinute: 600
  maxQueueShare: 1
  maxJobShare: 1
  dryRun: false
log:
  level: info
  format: json
"""
)


@pytest.fixture
def settings_file(tmp_path):
    def write(text) -> Path:
        path = tmp_path / "dovetail.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def mistakes(settings_file, text):
    path = settings_file(text)
    with pytest.raises(SettingsError) as caught:
        load(path)
    lines = str(caught.value).splitlines()
    assert all(line.startswith(f"{path}: ") for line in lines)
    return [line.removeprefix(f"{path}: ") for line in lines]


def test_the_defaults_are_those_that_are_documented():
    assert yaml.safe_load(yaml.safe_dump(defaults())) == yaml.safe_load(EVERYTHING)


def test_a_file_that_states_every_default_equals_one_that_states_none(settings_file):
    assert load(settings_file(EVERYTHING)) == load(settings_file(HEAD)) == Settings()


def test_what_is_stated_is_taken(settings_file):
    found = load(settings_file(HEAD + "placement: {rule: dot, shapeStep: 0}\nserver: {port: 0, drainSeconds: 0.5}\n"))
    assert (found.placement.rule, found.placement.shape_step) == ("dot", 0)
    assert (found.server.port, found.server.drain_seconds) == (0, 0.5)
    assert found.placement.in_flight_seconds == 15


@pytest.mark.parametrize(
    ("text", "path", "value", "accepted"),
    [
        ("sever: {}", "sever", "{}", "apiVersion, kind, server, placement, cluster, order, control"),
        ("server: {prot: 1}", "server.prot", "1", "address, port, threads"),
        ("server: {port: http}", "server.port", "http", "a whole number, 0 to 65535"),
        ("server: {port: '10351'}", "server.port", "'10351'", "a whole number, 0 to 65535"),
        ("server: {port: 65536}", "server.port", "65536", "0 to 65535"),
        ("server: {port: true}", "server.port", "true", "a whole number"),
        ("server: {threads: 0}", "server.threads", "0", "1 to 64"),
        ("server: {keepAliveSeconds: 90}", "server.keepAliveSeconds", "90", "91 to 86400"),
        ("server: {maxBodyBytes: 10}", "server.maxBodyBytes", "10", "1024 to"),
        ("server: {address: 5}", "server.address", "5", "a string"),
        ("server: {address: localhost}", "server.address", "localhost", "an IP address, such as 127.0.0.1"),
        ("server: null", "server", "null", "a mapping"),
        ("server: [1]", "server", "[1]", "a mapping"),
        ("placement: {rule: best}", "placement.rule", "best", "dot, cosine, l2-norm-diff, l2-norm-ratio"),
        ("placement: {shapeStep: 1.5}", "placement.shapeStep", "1.5", "0 to 1"),
        ("placement: {shapeStep: .nan}", "placement.shapeStep", ".nan", "0 to 1"),
        ("placement: {inFlightSeconds: 0}", "placement.inFlightSeconds", "0", "above 0, up to 86400"),
        ("placement: {waitMilliseconds: 0.5}", "placement.waitMilliseconds", "0.5", "a whole number"),
        ("cluster: {staleSeconds: .inf}", "cluster.staleSeconds", ".inf", "up to 86400"),
        ("cluster: {capacities: null}", "cluster.capacities", "null", "a list"),
        ("cluster: {capacities: [x]}", "cluster.capacities[0]", "x", "nodeSelector, capacity"),
        ("order: random", "order", "random", "auto, gates, filter"),
        ("control: {schedulers: dovetail}", "control.schedulers", "dovetail", "a list of strings"),
        ("control: {unboundPods: 0}", "control.unboundPods", "0", "1 to 10000"),
        ("control: {lease: {seconds: 0}}", "control.lease.seconds", "0", "1 to 3600"),
        ("policy: {fairness: 1}", "policy.fairness", "1", "0 to below 1"),
        ("queues: [{name: ''}]", "queues[0].name", "''", "a string that is not empty"),
        ("queues: [{name: a, policy: lifo}]", "queues[0].policy", "lifo", "fair, fifo"),
        (
            "queues: 3",
            "queues",
            "3",
            "a list of {name: ..., weight: ..., minimumShare: ..., policy: ..., parent: ..., namespaces: ...,"
            " opportunistic: ...}",
        ),
        ("log: {level: loud}", "log.level", "loud", "debug, info, warning, error"),
        ("log: {format: xml}", "log.format", "xml", "json, text"),
        ("1: 2", "1", "2", "apiVersion, kind"),
    ],
)
def test_each_mistake_is_named_by_path_value_and_what_is_accepted(settings_file, text, path, value, accepted):
    [line] = mistakes(settings_file, HEAD + text)
    assert line.startswith(f"{path}: {value}; ")
    assert accepted in line


def test_several_mistakes_are_named_at_once(settings_file):
    text = (
        "server: {prot: 1, threads: 0}\nplacement: {rule: best}\ncluster: {capacities: [{nodeSelector: {a: true}}]}\n"
    )
    assert [line.partition(": ")[0] for line in mistakes(settings_file, HEAD + text)] == [
        "server.prot",
        "server.threads",
        "placement.rule",
        "cluster.capacities[0].nodeSelector",
        "cluster.capacities[0].capacity",
    ]


def test_capacities_become_rules_in_bytes_per_second(settings_file):
    text = "cluster: {capacities: [{nodeSelector: {disk: ssd}, capacity: {disk-read: 1Ki, network-in: 2000}}]}\n"
    assert load(settings_file(HEAD + text)).capacity_rules() == (
        CapacityRule({"disk": "ssd"}, {"disk-read": 1024, "network-in": 2000}),
    )


@pytest.mark.parametrize(
    ("capacity", "said"),
    [
        ("{network-in: fast}", "network-in: 'fast' is not a quantity; accepted: numbers such as 2"),
        ("{network-in: -1}", "network-in: -1 is negative"),
        ("{cpu: 1}", "'cpu' is not a dimension; accepted: disk-read, disk-write, network-in, network-out"),
        (
            "{network-in: null}",
            "{network-in: null}; accepted: a mapping of disk-read, disk-write, network-in, network-out to quantities",
        ),
        ("5", "5; accepted: a mapping of"),
    ],
)
def test_a_wrong_capacity_is_named_with_its_place(settings_file, capacity, said):
    right, wrong = (f"{{nodeSelector: {{}}, capacity: {each}}}" for each in ("{}", capacity))
    text = f"cluster: {{capacities: [{right}, {wrong}]}}"
    [line] = mistakes(settings_file, HEAD + text)
    assert line.startswith(f"cluster.capacities[1].capacity: {said}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: DovetailConfiguration", "apiVersion: missing; accepted: dovetail.dev/v1alpha1"),
        (HEAD.replace("v1alpha1", "v2"), "apiVersion: dovetail.dev/v2; accepted: dovetail.dev/v1alpha1"),
        ("apiVersion: dovetail.dev/v1alpha1", "kind: missing; accepted: DovetailConfiguration"),
        (HEAD.replace("Dovetail", ""), "kind: Configuration; accepted: DovetailConfiguration"),
        ("", "null is not a mapping; accepted: apiVersion"),
        ("[]", "[] is not a mapping; accepted: apiVersion"),
        ("just words", "just words is not a mapping"),
    ],
)
def test_a_file_of_another_kind_is_refused(settings_file, text, said):
    [line] = mistakes(settings_file, text)
    assert line.startswith(said)


@pytest.mark.parametrize(
    "text",
    [
        "a: [1",
        "a: b: c",
        "\tx: 1",
        b"\xff\xfe\xfa",
        "a: 2026-13-45",
        "x: !!python/object/apply:os.getcwd []",
        HEAD + "a: " + "[" * 5_000,
    ],
)
def test_what_is_not_plain_yaml_is_refused(settings_file, text):
    path = settings_file(text)
    with pytest.raises(SettingsError, match="cannot be read as YAML"):
        load(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1,\nb: {", "line 2, column 5: while parsing a flow node, expected the node content, but found "),
        ("a: 1\n\tb: 1", "line 2, column 1: while scanning for the next token, found character '\\t' that cannot"),
        ("a: 1\nb: \0", "line 2: the character 0x0 is not allowed"),
        ("a: 1\n---\nb: 1", "line 2, column 1: expected a single document in the stream, but found another document"),
        ("a: 1\nb: 2026-13-45", "line 2, column 4: month must be in 1..12"),
        ("a: !!timestamp x", "line 1, column 4: this is not of the type that its tag says"),
        ("a: 0x" + "f" * 5_000, "line 1, column 4: Exceeds the limit"),
        ("a: 1\na: 2", "line 2, column 1: 'a' stands twice"),
        ("[" * 5_000, "it is nested too deeply"),
    ],
)
def test_what_is_not_plain_yaml_is_named_in_one_line_with_its_place(settings_file, text, said):
    path = settings_file(text)
    with pytest.raises(SettingsError) as raised:
        load(path)
    [line] = str(raised.value).splitlines()
    assert line.startswith(f"{path} cannot be read as YAML: {said}")


@pytest.mark.parametrize("text", ["kind: DovetailConfiguration\n", "log: {level: info, level: debug}\n"])
def test_a_key_that_stands_twice_is_refused(settings_file, text):
    path = settings_file(HEAD + text)
    with pytest.raises(SettingsError, match=r"stands twice"):
        load(path)


def test_a_key_is_not_compared_with_all_others_to_see_whether_it_stands_twice(monkeypatch):
    compared = []

    class Key(str):
        __hash__ = str.__hash__

        def __eq__(self, other):
            compared.append(other)
            return str.__eq__(self, other)

    monkeypatch.setitem(yaml.SafeLoader.yaml_constructors, "tag:yaml.org,2002:str", lambda _, node: Key(node.value))
    document_of("".join(f"key{number}: 1\n" for number in range(100)), "settings")
    assert len(compared) < 100


@pytest.mark.parametrize("key", ["[1]", "{a: 1}", "[[1]]", "!!python/tuple [1]"])
def test_a_key_that_is_no_word_is_refused(settings_file, key):
    with pytest.raises(SettingsError, match="cannot be read as YAML: line 3, column"):
        load(settings_file(f"{HEAD}? {key}\n: 1\n"))


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"cannot read .*missing\.yaml: No such file"):
        load(tmp_path / "missing.yaml")
    with pytest.raises(SettingsError, match=r"cannot read .*: Is a directory"):
        load(tmp_path)


def test_a_file_that_is_too_long_or_never_ends_is_refused_before_all_of_it_is_read(tmp_path):
    (tmp_path / "recording.jsonl").write_text("#" * 2**20 + "\n")
    for file in (tmp_path / "recording.jsonl", Path("/dev/zero")):
        with pytest.raises(SettingsError, match=f"{file}: it is too long for settings; accepted: 1 MiB"):
            load(file)


def test_a_document_can_be_parsed_without_a_file():
    assert parse(yaml.safe_load(HEAD)) == Settings()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("queues: [{name: a}, {name: a}]", "queues: 'a' stands twice"),
        ("queues: [{name: a, parent: b}]", "queues: the parent of 'a' is 'b', which is no queue here; accepted: none"),
        (
            "queues: [{name: a, parent: b}, {name: b, parent: a}]",
            "queues: 'a' is its own ancestor; accepted: parents without a cycle",
        ),
        ("control: {lease: {seconds: 5, renewSeconds: 6}}", "retrySeconds below renewSeconds below seconds"),
    ],
)
def test_values_that_contradict_each_other_are_named(settings_file, text, said):
    assert said in mistakes(settings_file, HEAD + text)[0]


def test_of_many_queues_a_wrong_parent_names_a_few():
    queues = [{"name": f"q{number:04}", "parent": "other"} for number in range(2000)]
    with pytest.raises(SettingsError) as error:
        parse({**yaml.safe_load(HEAD), "queues": queues})
    lines = str(error.value).splitlines()
    assert lines[1] == (
        "queues: the parent of 'q0001' is 'other', which is no queue here; accepted: "
        "q0000, q0002, q0003, q0004, q0005 and 1,994 more"
    )
    assert len(lines) == 2000


def test_only_queues_that_are_above_themselves_are_named_as_such():
    parents = {"a": "b", "b": "c", "c": "b", "d": "", "e": "d", "f": "f"}
    queues = [{"name": name, "parent": parent} for name, parent in parents.items()]
    with pytest.raises(SettingsError) as error:
        parse({**yaml.safe_load(HEAD), "queues": queues})
    lines = str(error.value).splitlines()
    assert [line.split()[1] for line in lines] == ["'b'", "'c'", "'f'"]


def test_a_long_line_of_parents_is_checked_in_time_that_grows_with_it():
    def lines_for(length):
        queues = [Queue(f"q{number}", parent=f"q{number - 1}" if number else "") for number in range(length)]
        return lines_of(lambda: list(mistakes_of(queues)))

    assert lines_for(400) < 3 * lines_for(200)


def test_queues_are_read_with_their_weights_and_parents():
    found = parse(yaml.safe_load(HEAD + "queues: [{name: a, parent: b, policy: fifo}, {name: b, minimumShare: 0.5}]"))
    assert found.declared_queues() == (Queue("a", fifo=True, parent="b"), Queue("b", minimum=0.5))


def test_namespaces_that_may_use_a_queue_are_names_or_labels():
    text = "queues: [{name: a, namespaces: [x, y]}, {name: b, namespaces: {team: sales}}, {name: c, namespaces: []}]"
    found = parse(yaml.safe_load(HEAD + text)).declared_queues()
    assert [it.namespaces for it in found] == [("x", "y"), {"team": "sales"}, ()]


def test_other_namespaces_of_a_queue_are_refused_with_what_is_accepted(settings_file):
    accepted = "a list of names of namespaces, or a mapping of labels that they carry to strings"
    for wrong in ("{team: 1}", "research", "[1]", "['']"):
        (mistake,) = mistakes(settings_file, HEAD + f"queues: [{{name: a, namespaces: {wrong}}}]")
        assert mistake.startswith("queues[0].namespaces: ")
        assert mistake.endswith(f"accepted: {accepted}")


def test_a_queue_needs_a_name(settings_file):
    assert mistakes(settings_file, HEAD + "queues: [{weight: 2}]") == ["queues[0].name: missing; accepted: a name"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "{waitSeconds: [5, 5]}",
            "locality.waitSeconds: 2 waits; "
            "accepted: one for the node and one for each of locality.levels, so at most 1",
        ),
        (
            "{levels: [rack, zone, rack]}",
            "locality.levels: 'rack' stands twice; accepted: each label once, the smallest groups first",
        ),
        (
            "{waitSeconds: [soon]}",
            "locality.waitSeconds: [soon]; accepted: a list, each a number, 0 to 86400",
        ),
        ("{waitSeconds: [-1]}", "locality.waitSeconds: [-1]; accepted: a list, each a number, 0 to 86400"),
        (
            "{levels: [' rack ']}",
            "locality.levels: ' rack ' cannot be a label; accepted: such as topology.kubernetes.io/zone",
        ),
        ("{levels: ['']}", "locality.levels: ['']; accepted: a list, each a string that is not empty"),
        ("{levels: rack}", "locality.levels: rack; accepted: a list, each a string that is not empty"),
        ("{remotePenalty: 1}", "locality.remotePenalty: 1; accepted: a number, 0 to below 1"),
        ("{target: 1, waitSeconds: [5]}", "locality.target: 1; accepted: a number, 0 to below 1"),
        ("{maxWaitSeconds: 0}", "locality.maxWaitSeconds: 0; accepted: a number, above 0, up to 86400"),
        (
            "{target: 0.95}",
            "locality.target: 0.95 without locality.waitSeconds; accepted: with at least one wait, the first of which "
            "holds until the rate is measured",
        ),
        (
            "{target: 0.95, waitSeconds: [5]}\norder: filter",
            "locality.target: 0.95 with order: filter; accepted: 0, since the extender plans by itself and measures "
            "nothing; set locality.waitSeconds to what `dovetail locality --from-cluster --target=0.95` says",
        ),
    ],
)
def test_a_mistake_about_locality_is_named(settings_file, text, line):
    assert mistakes(settings_file, HEAD + f"locality: {text}\n") == [line]


def test_waits_by_level_are_taken(settings_file):
    text = "locality: {levels: [topology.kubernetes.io/zone], waitSeconds: [5, 2.5], longTaskSeconds: 600}\n"
    found = load(settings_file(HEAD + text)).locality
    assert (found.levels, found.wait_seconds) == (("topology.kubernetes.io/zone",), (5, 2.5))
    assert found.long_task_seconds == 600


def test_a_target_for_locality_is_taken_with_the_wait_that_holds_until_it_is_known(settings_file):
    found = load(settings_file(HEAD + "locality: {target: 0.95, waitSeconds: [5], maxWaitSeconds: 60}\n")).locality
    assert (found.target, found.wait_seconds, found.max_wait_seconds) == (0.95, (5,), 60)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{url: prometheus:9090}", "usage.url: 'prometheus:9090'; accepted: such as http://prometheus.monitoring:9090"),
        ("{url: 'http://me:secret@here'}", "usage.url: 'http://(not shown)@here'; accepted: such as"),
        ("{url: 'http://here', metricsApi: true}", "usage.metricsApi: true with usage.url; accepted: one of them"),
        ("{nodeLabels: [a-b]}", "usage.nodeLabels: 'a-b' cannot be a label of a series"),
        ("{nodeQueries: {disk: x}}", "usage.nodeQueries: 'disk' is no dimension; accepted: cpu, memory, disk-read"),
        (
            "{nodeQueries: {cpu-pressure: x}}",
            "usage.nodeQueries: 'cpu-pressure' is no dimension; accepted: cpu, memory",
        ),
        ("{podQueries: {cpu-pressure: ''}}", "usage.podQueries.cpu-pressure: empty; accepted: a PromQL template"),
        ("{podQueries: {gpu: x}}", "usage.podQueries: 'gpu' is no dimension; accepted: cpu"),
        ("{nodeQueries: {cpu: ''}}", "usage.nodeQueries.cpu: empty; accepted: a PromQL template"),
        ("{podQueries: {time: ''}}", "usage.podQueries.time: empty; accepted: a PromQL template"),
        ("{access: {tokenFile: /t, username: me}}", "usage.access: tokenFile and username; accepted: one of them"),
        (
            "{access: {tokenFile: /t, headers: {authorization: Basic x}}}",
            "usage.access: headers.authorization with tokenFile or username; accepted: one of them",
        ),
        (
            "{access: {username: me, headers: {Authorization: Basic x}}}",
            "usage.access: headers.authorization with tokenFile or username; accepted: one of them",
        ),
        *(
            (
                f"{{metricsApi: true, {key}: {value}}}",
                f"usage.{key}: it counts for nothing with usage.metricsApi; accepted: with usage.url",
            )
            for key, value in (
                ("matchers", "'cluster=\"a\"'"),
                ("nodeQueries", "{cpu: x}"),
                ("podQueries", "{cpu: x}"),
                ("access", "{tokenFile: /t}"),
            )
        ),
        ("{access: {certFile: /c}}", "usage.access: certFile and keyFile; accepted: both or neither"),
        ("{access: {passwordFile: /p}}", "usage.access: passwordFile without username; accepted: both"),
        ('{access: {username: "m\\xE9"}}', "usage.access.username: (not shown); accepted: ASCII text on one line"),
        (
            '{access: {headers: {X-Scope-OrgID: "me\\n"}}}',
            "usage.access.headers.X-Scope-OrgID: (not shown); accepted: ASCII text on one line",
        ),
        ("{access: {headers: {a b: me}}}", "usage.access.headers: 'a b' cannot be a header; accepted: such as X-Scope"),
        ("{intervalSeconds: 0}", "usage.intervalSeconds: 0; accepted: a number, 1 to 600"),
        ("{access: {token: x}}", "usage.access.token: (not shown); there is no such setting; accepted: tokenFile"),
    ],
)
def test_a_mistake_about_usage_is_named(settings_file, text, said):
    (line,) = mistakes(settings_file, HEAD + f"usage: {text}\n")
    assert line.startswith(said)


def test_usage_is_read_where_a_url_or_the_api_is_named_and_not_by_default(settings_file):
    assert not Settings().usage.on
    assert load(settings_file(HEAD + "usage: {url: 'https://here/prometheus'}\n")).usage.on
    assert load(settings_file(HEAD + "usage: {metricsApi: true}\n")).usage.on


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (
            "opportunistic: {enabled: true}\n",
            "opportunistic.enabled: true without usage; accepted: with usage.url or usage.metricsApi",
        ),
        (
            "opportunistic: {enabled: true}\nusage: {metricsApi: true}\norder: filter\n",
            "opportunistic.enabled: true with order: filter; accepted: with order: auto or gates",
        ),
        (
            "opportunistic: {enabled: true, threshold: 0.96}\nusage: {metricsApi: true}\n",
            "opportunistic.threshold: 0.96 above evictAtMemory 0.95; accepted: at most that, "
            "else pods would be started to be evicted",
        ),
        (
            "opportunistic: {enabled: true, evictBy: pressure}\nusage: {metricsApi: true}\n",
            "opportunistic.evictBy: pressure with usage.metricsApi; accepted: with usage.url, which can know it",
        ),
        (
            "opportunistic: {enabled: true, threshold: auto}\nusage: {metricsApi: true}\n",
            "opportunistic.threshold: auto with usage.metricsApi, which keeps no history; accepted: auto with "
            "usage.url, or a number",
        ),
        (
            "opportunistic: {threshold: most}\n",
            "opportunistic.threshold: most; accepted: a number, above 0, up to 1, or auto",
        ),
        (
            "opportunistic: {threshold: 1.5}\n",
            "opportunistic.threshold: 1.5; accepted: a number, above 0, up to 1, or auto",
        ),
    ],
)
def test_pods_on_idle_room_need_use_gates_and_thresholds_in_order(settings_file, text, mistake):
    assert mistakes(settings_file, HEAD + text) == [mistake]


def test_there_is_one_hold_for_each_lease(settings_file):
    text = "control: {lease: {namespace: ours, name: turns}}\n"
    assert load(settings_file(HEAD + text)).hold_name == "ours.turns"


@pytest.mark.parametrize(("order", "asks"), [("auto", True), ("gates", False), ("filter", True)])
def test_filter_keeps_the_order_of_pods_without_a_gate_unless_all_wait_behind_one(settings_file, order, asks):
    assert load(settings_file(HEAD + f"order: {order}\n")).asks_filter is asks


def test_the_threshold_is_a_number_or_auto(settings_file):
    more = "usage: {url: 'http://x'}\nopportunistic: {enabled: true, threshold: %s}\n"
    assert load(settings_file(HEAD + more % "auto")).opportunistic.threshold == "auto"
    assert load(settings_file(HEAD + more % "0.7")).opportunistic.threshold == 0.7
    assert mistakes(settings_file, HEAD + more % "0") == [
        "opportunistic.threshold: 0; accepted: a number, above 0, up to 1, or auto"
    ]


def test_secrets_are_not_shown(settings_file):
    usage = "usage: {url: 'http://u:hunter2@p', access: {password: hunter2, headers: hunter2}, matchers: {a: 'x://u:hunter2@h'}}"
    told = mistakes(settings_file, HEAD + usage)
    assert len(told) == 3
    assert "hunter2" not in "".join(told)
    assert told[0].startswith("usage.access.password: (not shown); there is no such setting; accepted: tokenFile, ")
    (url,) = mistakes(settings_file, HEAD + "usage: {url: 'http://u:hunter2@p'}")
    assert url.startswith("usage.url: 'http://(not shown)@p'; accepted: ")


def test_of_a_long_value_the_beginning_is_shown(settings_file):
    (told,) = mistakes(settings_file, "x" * 1_000_000)
    assert len(told) < 1_000
    (told,) = mistakes(settings_file, HEAD + f"order: {'x' * 100_000}")
    assert len(told) < 1_000


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("control: {schedulers: []}", "control.schedulers: []; accepted: one name of a scheduler, or more"),
        ("control: {schedulers: ['']}", "control.schedulers: ['']; accepted: one name of a scheduler, or more"),
        ("control: {lease: {name: Bad Name}}", "control.lease.name: 'Bad Name'; accepted: lower case letters, "),
        (
            "usage: {url: 'http://p'}\nopportunistic: {enabled: true, evictAtCpu: 0.5}",
            "opportunistic.threshold: 0.8 above evictAtCpu 0.5; accepted: at most that",
        ),
        (
            "usage: {url: 'http://p'}\nopportunistic: {enabled: true, evictAtIo: 0.6}",
            "opportunistic.threshold: 0.8 above evictAtIo 0.6; accepted: at most that",
        ),
    ],
)
def test_what_could_not_work_is_refused(settings_file, text, told):
    (line,) = mistakes(settings_file, HEAD + text)
    assert line.startswith(told)
