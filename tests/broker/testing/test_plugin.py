"""The fixtures, as a project that installed the plugin sees them."""

import pytest

from tests.waiting import RUN, seconds

pytest_plugins = ["pytester"]

INI = """
[pytest]
filterwarnings = error
kafka_broker_startup_timeout = 120
addopts = --strict-markers --strict-config
"""
CLIENT = """
    import pytest
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient

    def topics(broker):
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        return set(admin.list_topics(timeout=60).topics)
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """An empty project in which a warning is an error."""
    pytester.makeini(INI)
    return pytester


def run(project: pytest.Pytester, source: str) -> pytest.RunResult:
    """Run this test module in a pytest process of its own."""
    project.makepyfile(CLIENT + source)
    return project.runpytest_subprocess("-p", "no:cacheprovider", timeout=seconds(RUN))


def test_a_session_broker_and_a_topic_per_test(project: pytest.Pytester) -> None:
    """One process serves all tests; each has a topic of its own, gone when it ends."""
    result = run(
        project,
        """
    seen = []

    @pytest.mark.parametrize("what", ["a b", "ü/"])
    def test_one(kafka_broker, kafka_topic, what):
        assert kafka_topic.startswith("test_one-")
        producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
        producer.produce(kafka_topic, b"x")
        assert producer.flush(60) == 0
        seen.append((kafka_broker.pid, kafka_topic))

    @pytest.mark.kafka_topic(partitions=3, config={"retention.ms": 60000})
    def test_two(kafka_broker, kafka_topic):
        assert (kafka_broker.log_dir / f"{kafka_topic}-2").is_dir()
        pids, names = zip(*seen)
        assert set(pids) == {kafka_broker.pid}
        assert len(set(names)) == 2
        assert topics(kafka_broker) == {kafka_topic}
""",
    )
    result.assert_outcomes(passed=3)


def test_a_fresh_broker_has_the_settings_of_its_test(project: pytest.Pytester) -> None:
    """Marker over ini; the topic goes to the broker that the test uses."""
    project.makeini(INI + "kafka_broker_settings =\n  num.partitions = 2\n  broker.rack=r1\n")
    result = run(
        project,
        """
    @pytest.mark.kafka_settings({"num.partitions": 4})
    def test_marked(fresh_kafka_broker, kafka_topic):
        assert fresh_kafka_broker.settings["num.partitions"] == "4"
        assert fresh_kafka_broker.settings["broker.rack"] == "r1"
        assert (fresh_kafka_broker.log_dir / f"{kafka_topic}-3").is_dir()

    def test_plain(kafka_broker, kafka_topic):
        assert kafka_broker.settings["num.partitions"] == "2"

    def test_factory(kafka_broker_factory):
        first, second = kafka_broker_factory({"num.partitions": 5}), kafka_broker_factory()
        assert first.settings["num.partitions"] == "5"
        assert first.cluster_id != second.cluster_id
        first.stop()
""",
    )
    result.assert_outcomes(passed=3)


def test_a_test_may_stop_the_broker_or_delete_its_topic(project: pytest.Pytester) -> None:
    """What a test has done itself is no error when it is tidied up."""
    result = run(
        project,
        """
    def test_deletes(kafka_broker, kafka_topic):
        kafka_broker.delete_topic(kafka_topic)

    def test_stops(fresh_kafka_broker, kafka_topic):
        fresh_kafka_broker.stop()

    def test_restarts(fresh_kafka_broker, kafka_topic):
        fresh_kafka_broker.restart()
        assert kafka_topic in topics(fresh_kafka_broker)
""",
    )
    result.assert_outcomes(passed=3)


def test_a_broker_that_does_not_start_fails_the_test_with_its_words(
    project: pytest.Pytester,
) -> None:
    """The reason is in the test's report."""
    result = run(
        project,
        """
    @pytest.mark.kafka_settings({"num.partitions": "many"})
    def test_it(fresh_kafka_broker):
        pass
""",
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*num.partitions=many: must be a whole number*"])


def test_loading_the_plugin_costs_next_to_nothing(project: pytest.Pytester) -> None:
    """It is loaded in every pytest run on the machine: no client, no protocol, no server."""
    result = run(
        project,
        """
    import sys
    before = {name for name in sys.modules if name.startswith("barnabas")}

    def test_it():
        assert before <= {"barnabas_broker", "barnabas_broker.testing",
                          "barnabas_broker.testing.broker", "barnabas_broker.testing.plugin"}
""",
    )
    result.assert_outcomes(passed=1)


def test_the_fixtures_and_options_explain_themselves(project: pytest.Pytester) -> None:
    """`pytest --fixtures`, `--markers` and `--help` are where people look."""
    project.makepyfile("def test_it(): pass")
    shown = [
        project.runpytest_subprocess(option, timeout=seconds(RUN)).stdout.str()
        for option in ("--fixtures", "--markers", "--help")
    ]
    for name in ("kafka_broker ", "fresh_kafka_broker", "kafka_broker_factory", "kafka_topic"):
        assert name in shown[0]
    assert "kafka_settings(settings)" in shown[1]
    assert "kafka_broker_settings" in shown[2]


def test_a_secured_broker_in_one_line(project: pytest.Pytester) -> None:
    """It speaks TLS with passwords only, and goes by ACLs; topics are made as with any other."""
    result = run(
        project,
        """
    from confluent_kafka import KafkaException
    from barnabas_kafka.errors import KafkaError

    def connected(properties):
        return AdminClient({**properties, "log_level": 0}).list_topics(timeout=60).topics

    def test_one(secured_kafka_broker):
        name = secured_kafka_broker.create_topic("orders")
        assert name in connected(secured_kafka_broker.client_properties())
        assert name not in connected(secured_kafka_broker.client_properties("alice"))
        plain = AdminClient({"bootstrap.servers": secured_kafka_broker.bootstrap_servers,
                             "log_level": 0})
        with pytest.raises(KafkaException):
            plain.list_topics(timeout=2)
        secured_kafka_broker.delete_topic(name)

    @pytest.mark.parametrize("secured", [True, False])
    def test_two(kafka_broker_factory, secured):
        broker = kafka_broker_factory({"num.partitions": 2}, secured=secured)
        broker.create_topic("t")
        broker.restart()
        assert "t" in connected(broker.client_properties())
        assert (broker.command_config().stat().st_mode & 0o077) == 0
        assert ((broker.directory / "server.properties").stat().st_mode & 0o077) == 0
    """,
    )
    result.assert_outcomes(passed=3)
