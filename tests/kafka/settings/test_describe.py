"""A broker's settings are described as Apache Kafka's DescribeConfigs answers."""

from barnabas_kafka.settings import broker
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.definitions import Kind
from barnabas_kafka.settings.describe import (
    ConfigEntry,
    ConfigSource,
    describe_broker,
    describe_cluster_wide,
)
from barnabas_kafka.settings.topic import describe_topic

from .apache_facts import FIXTURES


def describe(settings: BrokerSettings) -> dict[str, ConfigEntry]:
    """Every entry by name."""
    return {entry.name: entry for entry in describe_broker(settings)}


# As given to Apache Kafka in fixtures/DescribedSettings.java.
GIVEN = {
    "zookeeper.connect": "localhost:2181",
    "broker.id": "1",
    "log.retention.minutes": "5",
    "log.flush.scheduler.interval.ms": "900",
    "log.message.timestamp.difference.max.ms": "77",
    "log.dir": "/a",
    "ssl.key.password": "secret",
    "acme.plugin.depth": "9",
    "listener.name.inside.ssl.client.auth": "required",
    "compression.type": " gzip ",
}
OVERRIDES = {"retention.ms": "7", "cleanup.policy": "compact, delete"}


def as_printed(resource: str, entry: ConfigEntry) -> str:
    """An entry in the form of fixtures/described-3.9.1.tsv."""
    synonyms = "\x1f".join(
        f"{int(each.source)}|{each.name}|{shown(each.value)}" for each in entry.synonyms
    )
    flags = [str(flag).lower() for flag in (entry.is_sensitive, entry.read_only)]
    cells = [resource, entry.name, shown(entry.value), str(int(entry.source)), *flags]
    return "\t".join([*cells, str(int(entry.type)), synonyms])


def shown(value: str | None) -> str:
    """A value, or the mark of none."""
    return "\\N" if value is None else value


def test_answers_are_apache_kafkas() -> None:
    """Every entry of a broker and a topic, to the last synonym, is what Kafka 3.9.1 answers."""
    settings = BrokerSettings.from_mapping(GIVEN)
    ours = [
        as_printed("BROKER", entry)
        for entry in describe_broker(settings)
        if not entry.name.startswith("barnabas.")
    ]
    ours += [as_printed("TOPIC", entry) for entry in describe_topic(settings, OVERRIDES)]
    theirs = (FIXTURES / "described-3.9.1.tsv").read_text("utf-8").splitlines()
    assert sorted(ours) == sorted(theirs)


def test_every_public_setting_is_described_once() -> None:
    """Internal settings show only where somebody gave them."""
    entries = describe_broker(BrokerSettings.from_mapping({"log.initial.task.delay.ms": "1"}))
    names = [entry.name for entry in entries]
    assert len(names) == len(set(names))
    hidden = {key.name for key in broker.KEYS.values() if key.internal}
    assert set(broker.KEYS) - set(names) == hidden - {"log.initial.task.delay.ms"}


def test_layers_and_synonyms() -> None:
    """Every layer that says something shows, under every name that means the same."""
    settings = BrokerSettings({"log.retention.hours": "1"}).with_dynamic(
        {"log.retention.ms": "7"}, {"log.retention.ms": "8"}
    )
    entry = describe(settings)["log.retention.ms"]
    assert (entry.value, entry.source) == ("7", ConfigSource.DYNAMIC_BROKER)
    assert [(each.name, each.value, each.source.name) for each in entry.synonyms] == [
        ("log.retention.ms", "7", "DYNAMIC_BROKER"),
        ("log.retention.ms", "8", "DYNAMIC_DEFAULT_BROKER"),
        ("log.retention.hours", "1", "STATIC_BROKER"),
        ("log.retention.hours", "168", "DEFAULT"),
    ]


def test_a_setting_without_value() -> None:
    """No default and nothing given: no value, no synonym, the source is the default."""
    entry = describe(BrokerSettings({}))["broker.rack"]
    assert (entry.value, entry.source, entry.synonyms) == (None, ConfigSource.DEFAULT, ())


def test_secrets_and_unknown_names_have_no_value() -> None:
    """A plugin's setting may be a secret, so its value is not shown either."""
    entries = describe(BrokerSettings({"ssl.key.password": "s3cret", "acme.key": "s3cret"}))
    for name in ("ssl.key.password", "acme.key"):
        assert entries[name].is_sensitive
        assert entries[name].value is None
        assert {each.value for each in entries[name].synonyms} == {None}
    assert entries["acme.key"].type is Kind.UNKNOWN


def test_dynamic_settings_are_not_read_only() -> None:
    """Read-only means that not even another name for the same can change."""
    entries = describe(BrokerSettings({}))
    assert entries["num.partitions"].read_only
    assert not entries["message.max.bytes"].read_only
    assert not entries["listeners"].read_only


def test_a_listeners_own_setting() -> None:
    """It is shown under its own name with the type of the setting at its end."""
    name = "listener.name.inside.ssl.client.auth"
    entry = describe(BrokerSettings({name: "required"}))[name]
    assert (entry.value, entry.type) == ("required", Kind.STRING)


def test_changes_for_all_brokers() -> None:
    """The resource without a name holds only what was changed for all."""
    settings = BrokerSettings({}).with_dynamic({}, {"message.max.bytes": "5"})
    (entry,) = describe_cluster_wide(settings)
    assert (entry.name, entry.value) == ("message.max.bytes", "5")
    assert entry.source is ConfigSource.DYNAMIC_DEFAULT_BROKER
