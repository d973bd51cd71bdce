"""A broker's settings: files from the notes, typed values, unknown names, layers."""

import pytest

from barnabas_kafka.settings import broker
from barnabas_kafka.settings.broker import BrokerSettings, find_key
from barnabas_kafka.settings.definitions import Served, SettingError
from barnabas_kafka.settings.properties import parse_properties

from .apache_facts import FIXTURES


def read(name: str) -> BrokerSettings:
    """The settings of a fixture."""
    data = (FIXTURES / name).read_bytes()
    return BrokerSettings.from_mapping(parse_properties(data, origin=name))


def test_the_notes_cluster_of_three() -> None:
    """The first file of the notes is taken unchanged."""
    settings = read("notes-three-brokers.properties")
    assert settings[broker.LOG_DIRS] == ("/home/user/data_logs/k1",)
    assert settings[broker.LOG_RETENTION_MS] == 7 * 24 * 3_600_000
    assert [str(listener) for listener in settings.listeners] == ["PLAINTEXT://localhost:9092"]
    assert settings[broker.ZOOKEEPER_CONNECT] == "zk1:2181,zk2:2182,zk3:2183"
    assert settings.unknown == {}


def test_the_notes_hadoop_cluster() -> None:
    """The second file too: a blank after a value is dropped, another vendor's names are kept."""
    settings = read("notes-hadoop-cluster.properties")
    assert settings[broker.BROKER_ID] == 1
    assert settings[broker.LISTENERS] == "PLAINTEXT://hadoop-cluster01:9092"
    assert settings[broker.LOG_FLUSH_INTERVAL_MS] == 1000
    assert settings[broker.LOG_RETENTION_BYTES] == 1073741824
    assert settings.unknown == {
        "confluent.support.metrics.enable": None,
        "confluent.support.customer.id": None,
    }


def test_settings_without_effect_are_listed() -> None:
    """Nothing that was given is silently ignored."""
    idle = read("notes-three-brokers.properties").without_effect
    assert idle["num.network.threads"].served is Served.OTHERWISE
    assert "zookeeper.connect" not in idle
    assert "log.segment.bytes" not in idle


def test_unknown_names_have_the_nearest_known_one() -> None:
    """A slip of the finger, an old name, and a name like no other."""
    settings = BrokerSettings.from_mapping(
        {"num.partitons": "3", "host.name": "h", "acme.plugin.depth": "9"}
    )
    assert settings.unknown == {
        "num.partitons": "num.partitions",
        "host.name": "listeners",
        "acme.plugin.depth": None,
    }


def test_settings_of_authorizers_are_known() -> None:
    """Brokers read them for a class that is loaded at start; none are Kafka's own settings."""
    given = {
        "super.users": "User:admin",
        "allow.everyone.if.no.acl.found": "true",
        "authorizer.zookeeper.connection.timeout.ms": "6000",
    }
    assert BrokerSettings.from_mapping(given, strict=True).unknown == {}


def test_strict_refuses_unknown_names() -> None:
    """The refusal carries the hint."""
    with pytest.raises(SettingError, match=r"did you mean num\.partitions\?"):
        BrokerSettings.from_mapping({"num.partitons": "3"}, strict=True)


def test_all_problems_at_once() -> None:
    """Every malformed value is reported, in the order of the file."""
    problems = BrokerSettings.problems({"num.partitions": "x", "log.segment.bytes": "1"})
    assert [problem.key for problem in problems] == ["num.partitions", "log.segment.bytes"]


def test_a_wrong_value_hides_no_other_mistake() -> None:
    """Unknown names and contradictions are named with it; not what may contradict it alone."""
    given = {
        "num.partitions": "many",
        "log.retention.hour": "1",
        "broker.id": "-5",
        "broker.id.generation.enable": "false",
    }
    problems = BrokerSettings.problems(given, strict=True)
    assert [each.key for each in problems] == ["num.partitions", "broker.id", "log.retention.hour"]
    given["broker.id.generation.enable"] = "perhaps"
    assert "log.retention.hour" in [
        each.key for each in BrokerSettings.problems(given, strict=True)
    ]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("listener.name.inside.ssl.keystore.location", "ssl.keystore.location"),
        ("listener.name.inside.scram-sha-256.sasl.jaas.config", "sasl.jaas.config"),
        ("listener.name.inside.max.connections", "max.connections"),
    ],
)
def test_settings_of_one_listener(name: str, found: str) -> None:
    """A prefix makes a setting one listener's own."""
    key = find_key(name)
    assert key is not None
    assert key.name == found


def test_names_that_only_look_like_a_listeners() -> None:
    """A prefix alone makes no setting."""
    assert find_key("listener.name.inside") is None
    assert find_key("listener.name.inside.nothing") is None


def test_a_malformed_value_of_one_listener_keeps_its_name() -> None:
    """The refusal names what the user wrote, prefix included."""
    name = "listener.name.inside.max.connections"
    assert [str(problem) for problem in BrokerSettings.problems({name: "many"})] == [
        f"{name}=many: must be a whole number; allowed: at least 0"
    ]


def test_changes_at_run_time_go_first() -> None:
    """Per broker before cluster-wide before given before default; the old object stays."""
    given = BrokerSettings.from_mapping({"message.max.bytes": "10"})
    cluster = given.with_dynamic({}, {"message.max.bytes": "20"})
    both = given.with_dynamic({"message.max.bytes": "30"}, {"message.max.bytes": "20"})
    found = [each[broker.MESSAGE_MAX_BYTES] for each in (BrokerSettings({}), given, cluster, both)]
    assert found == [1048588, 10, 20, 30]


def test_a_change_at_run_time_replaces_other_names_for_the_same() -> None:
    """Hours changed for all go before milliseconds in the file, which are forgotten."""
    given = BrokerSettings.from_mapping({"log.retention.minutes": "5"})
    assert given.with_dynamic({}, {"log.retention.ms": "7"})[broker.LOG_RETENTION_MS] == 7


def test_a_wrong_change_at_run_time_is_refused() -> None:
    """Malformed, or contradicting what was given."""
    settings = BrokerSettings.from_mapping({})
    with pytest.raises(SettingError):
        settings.with_dynamic({"message.max.bytes": "much"})
    with pytest.raises(SettingError):
        settings.with_dynamic({}, {"log.cleaner.threads": "1000"})


def test_non_default_settings_hide_secrets() -> None:
    """The list that a broker logs at start."""
    settings = BrokerSettings.from_mapping({"ssl.key.password": "s3cret", "num.partitions": "1"})
    assert settings.changed == {"ssl.key.password": "[hidden]"}


def test_limits_by_address() -> None:
    """Overrides are pairs of host and count, IPv6 hosts included."""
    settings = BrokerSettings.from_mapping({"max.connections.per.ip.overrides": "a:1, ::1:2"})
    assert settings.connections_per_address == {"a": 1, "::1": 2}


def test_advertised_listeners_default_to_those_listened_on() -> None:
    """And the listener among brokers is found by name."""
    settings = BrokerSettings.from_mapping({"listeners": "PLAINTEXT://h:1"})
    assert settings.advertised_listeners == settings.listeners
    assert settings.inter_broker_listener == "PLAINTEXT"
    assert settings.control_plane_listener is None


def test_the_listener_of_the_controller() -> None:
    """Names of listeners are in capitals, however they are given."""
    given = {
        "listeners": "PLAINTEXT://h:1,CONTROL://h:2",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROL:PLAINTEXT",
        "control.plane.listener.name": "control",
    }
    assert BrokerSettings.from_mapping(given).control_plane_listener == "CONTROL"


@pytest.mark.parametrize("name", ["broker.id", "node.id"])
def test_a_broker_has_one_number(name: str) -> None:
    """Either name gives it, and only what was given is listed."""
    settings = BrokerSettings.from_mapping({name: "7"})
    assert (settings[broker.BROKER_ID], settings[broker.NODE_ID]) == (7, 7)
    assert settings.changed == {name: "7"}


def test_old_names_of_our_own_settings_are_read() -> None:
    """They are checked as the new ones are, which go first; each is told."""
    old, new = "barnabas.log.dirs.reserve.bytes", broker.BARNABAS_LOG_DIRS_MIN_FREE_BYTES
    settings = BrokerSettings.from_mapping({old: "7"})
    assert (settings[new], settings.renamed, settings.unknown) == (7, {old: new.name}, {})
    assert BrokerSettings.from_mapping({old: "7", new.name: "8"})[new] == 8
    assert settings.with_dynamic({}, {old: "9"})[new] == 9
    for given in ({new.name: "8", old: "7"}, {old: "7", new.name: "8"}):
        assert settings.with_dynamic({}, given)[new] == 8
        assert settings.with_dynamic(given, {})[new] == 8
    with pytest.raises(SettingError, match=old):
        BrokerSettings.from_mapping({old: "x"})
