"""Settings that contradict each other, or that must not be passed over, are refused at start."""

import pytest

from barnabas_kafka.settings.broker import BrokerSettings

TWO = "PLAINTEXT://:1,INSIDE://:2"
MAP = "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT,SSL:SSL"


def lines(given: dict[str, str]) -> list[str]:
    """Everything wrong with the settings."""
    return [str(problem) for problem in BrokerSettings.problems(given)]


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (
            {"broker.id": "1001"},
            "broker.id=1001: must be between -1 and 1000 (reserved.broker.max.id)",
        ),
        (
            {"broker.id.generation.enable": "false"},
            "broker.id=-1: must be at least 0 while broker.id.generation.enable is false",
        ),
        ({"node.id": "3", "broker.id": "2"}, "node.id=3: must be the same as broker.id (2)"),
        ({"log.dirs": ","}, "log.dirs=,: must name at least one directory"),
        ({"log.retention.ms": "0"}, "log.retention.ms=0: must be -1 (for ever) or at least 1"),
        ({"log.roll.ms": "0"}, "log.roll.ms=0: must be at least 1"),
        ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms=-1: must be at least 0"),
        (
            {"log.cleaner.threads": "128"},
            (
                "log.cleaner.dedupe.buffer.size=134217728:"
                " must be more than 1048576 for each of log.cleaner.threads (128)"
            ),
        ),
        (
            {"replica.fetch.wait.max.ms": "30001", "replica.socket.timeout.ms": "30002"},
            "replica.lag.time.max.ms=30000: must be at least replica.fetch.wait.max.ms (30001)",
        ),
        (
            {"offsets.commit.required.acks": "4"},
            (
                "offsets.commit.required.acks=4:"
                " must be between -1 and offsets.topic.replication.factor (3)"
            ),
        ),
        (
            {"group.consumer.session.timeout.ms": "44999"},
            (
                "group.consumer.session.timeout.ms=44999: must be between"
                " group.consumer.min.session.timeout.ms (45000) and"
                " group.consumer.max.session.timeout.ms (60000)"
            ),
        ),
        (
            {"group.consumer.max.session.timeout.ms": "44999"},
            (
                "group.consumer.session.timeout.ms=45000: must be between"
                " group.consumer.min.session.timeout.ms (45000) and"
                " group.consumer.max.session.timeout.ms (44999)"
            ),
        ),
        (
            {"group.consumer.heartbeat.interval.ms": "15001"},
            (
                "group.consumer.heartbeat.interval.ms=15001: must be between"
                " group.consumer.min.heartbeat.interval.ms (5000) and"
                " group.consumer.max.heartbeat.interval.ms (15000)"
            ),
        ),
        (
            {
                "group.consumer.min.session.timeout.ms": "5000",
                "group.consumer.session.timeout.ms": "5000",
            },
            (
                "group.consumer.heartbeat.interval.ms=5000:"
                " must be less than group.consumer.session.timeout.ms (5000)"
            ),
        ),
        (
            {"queued.max.request.bytes": "5"},
            "queued.max.request.bytes=5: must be at least socket.request.max.bytes (104857600)",
        ),
        (
            {"connections.max.idle.ms": "100"},
            (
                "connection.failed.authentication.delay.ms=100:"
                " must be less than connections.max.idle.ms (100)"
            ),
        ),
        (
            {"max.connections.per.ip": "0"},
            (
                "max.connections.per.ip=0:"
                " may be 0 only where max.connections.per.ip.overrides names hosts"
            ),
        ),
        (
            {"max.connections.per.ip.overrides": "h"},
            "max.connections.per.ip.overrides=h: 'h' is not of the form host:count",
        ),
        ({"listeners": ""}, "listeners=: must name at least one listener"),
        (
            {"advertised.listeners": "SSL://h:1"},
            "advertised.listeners=SSL://h:1: listener SSL is not in listeners",
        ),
        (
            {"listeners": "PLAINTEXT://0.0.0.0:9092"},
            (
                "advertised.listeners=PLAINTEXT://0.0.0.0:9092:"
                " 0.0.0.0 is no address for clients; set advertised.listeners to one they reach"
            ),
        ),
        (
            {"advertised.listeners": "PLAINTEXT://a:1,PLAINTEXT://b:1"},
            (
                "advertised.listeners=PLAINTEXT://a:1,PLAINTEXT://b:1:"
                " listener PLAINTEXT is given twice"
            ),
        ),
        (
            {"inter.broker.listener.name": "OTHER"},
            (
                "inter.broker.listener.name=OTHER:"
                " listener OTHER, used among brokers, is not in advertised.listeners"
            ),
        ),
        (
            {"security.inter.broker.protocol": "SSL"},
            (
                "security.inter.broker.protocol=SSL:"
                " listener SSL, used among brokers, is not in advertised.listeners"
            ),
        ),
        (
            {
                "inter.broker.listener.name": "PLAINTEXT",
                "security.inter.broker.protocol": "PLAINTEXT",
            },
            (
                "inter.broker.listener.name=PLAINTEXT:"
                " excludes security.inter.broker.protocol; give one of the two"
            ),
        ),
        (
            {"control.plane.listener.name": "PLAINTEXT"},
            (
                "control.plane.listener.name=PLAINTEXT:"
                " must be a listener of its own in advertised.listeners"
            ),
        ),
        (
            {"control.plane.listener.name": "ELSEWHERE"},
            (
                "control.plane.listener.name=ELSEWHERE:"
                " must be a listener of its own in advertised.listeners"
            ),
        ),
    ],
)
def test_contradictions(given: dict[str, str], line: str) -> None:
    """Each is one line that names a setting, its value and what would do."""
    assert line in lines(given)


def test_listeners_that_agree() -> None:
    """Several listeners, one of them for brokers, one for the controller."""
    given = {
        "listeners": TWO,
        "listener.security.protocol.map": MAP,
        "inter.broker.listener.name": "inside",
        "control.plane.listener.name": "PLAINTEXT",
    }
    assert lines(given) == []


SASL = {
    "listeners": "IN://a:9092,OUT://a:9093",
    "listener.security.protocol.map": "IN:SASL_SSL,OUT:PLAINTEXT",
    "inter.broker.listener.name": "IN",
    "zookeeper.connect": "z:2181",
}
MECHANISM = "sasl.mechanism.inter.broker.protocol"


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (
            {},
            (
                f"{MECHANISM}=GSSAPI: is not offered among brokers (listener IN); "
                "choose PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER"
            ),
        ),
        (
            {
                MECHANISM: "PLAIN",
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.in.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
            },
            (
                f"{MECHANISM}=PLAIN: must be included in sasl.enabled.mechanisms of listener IN, "
                "which brokers use among themselves (SCRAM-SHA-256, SCRAM-SHA-512)"
            ),
        ),
    ],
)
def test_a_mechanism_that_brokers_cannot_use(given: dict[str, str], line: str) -> None:
    """It has to be offered here, and by the listener; a broker without others needs none."""
    assert lines({**SASL, **given}) == [line]
    assert lines({**SASL, **given, "zookeeper.connect": ""}) == []
    assert lines({**SASL, **given, "inter.broker.listener.name": "OUT"}) == []


def test_mechanisms_that_brokers_can_use() -> None:
    """The names of listeners do not matter, nor what other listeners offer."""
    enabled = {"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"}
    for mechanism in enabled["sasl.enabled.mechanisms"].split(","):
        given = {**SASL, **enabled, MECHANISM: mechanism}
        assert lines(given) == []
        control = {"inter.broker.listener.name": "OUT", "control.plane.listener.name": "IN"}
        assert lines({**given, **control}) == []


@pytest.mark.parametrize(
    "given",
    [
        {"authorizer.class.name": "com.example.Authorizer"},
        {"principal.builder.class": "com.example.Builder"},
        {"create.topic.policy.class.name": "com.example.Policy"},
        {"alter.config.policy.class.name": "com.example.Policy"},
        {"process.roles": "broker,controller"},
        {"remote.log.storage.system.enable": "true"},
        {"zookeeper.metadata.migration.enable": "true"},
        {"config.providers": "file"},
        {"replica.selector.class": "com.example.Selector"},
    ],
)
def test_unsupported_security_settings_are_refused(given: dict[str, str]) -> None:
    """A setting that guards or changes a cluster is refused where it cannot be served."""
    assert len(lines(given)) == 1


def test_selectors_of_replicas() -> None:
    """Kafka's own two are known by their class names; of another it is said which these are."""
    for name in ("LeaderSelector", "RackAwareReplicaSelector"):
        assert lines({"replica.selector.class": f"org.apache.kafka.common.replica.{name}"}) == []
    (line,) = lines({"replica.selector.class": "com.example.Selector"})
    assert line == (
        "replica.selector.class=com.example.Selector: is not served;"
        " org.apache.kafka.common.replica.LeaderSelector and"
        " org.apache.kafka.common.replica.RackAwareReplicaSelector are"
    )


def test_nothing_wrong_with_the_defaults() -> None:
    """A broker starts with no settings at all."""
    assert lines({}) == []


@pytest.mark.parametrize(
    ("name", "value", "reported"),
    [
        ("cipher.algorithm", "AES/GCM/NoPadding", "choose AES/CBC/PKCS5Padding"),
        ("keyfactory.algorithm", "PBKDF2WithHmacMD5", "choose PBKDF2WithHmacSHA512"),
        ("key.length", "100", "choose 128, 192, 256"),
        ("iterations", "1000001", "at most 1000000"),
    ],
)
def test_how_passwords_are_encrypted(name: str, value: str, reported: str) -> None:
    """What Java has and we have not is refused, where there is a secret to encrypt with."""
    given = {f"password.encoder.{name}": value}
    assert lines(given) == []
    (line,) = lines({**given, "password.encoder.secret": "hush"})
    assert line.startswith(f"password.encoder.{name}={value}: ")
    assert reported in line
