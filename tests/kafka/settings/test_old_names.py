"""Old and misspelt names lead to the real ones."""

from barnabas_kafka.settings import broker
from barnabas_kafka.settings.old_names import OLD_NAMES, Side, explain, nearest_name


def test_the_table_leads_to_real_names() -> None:
    """A broker's name is never called old by mistake, and what is meant exists."""
    for old in OLD_NAMES:
        if old.side is Side.BROKER:
            assert old.said not in broker.KEYS
            assert old.meant is None or old.meant in broker.KEYS


def test_each_name_stands_once() -> None:
    """The table is a table."""
    said = [old.said for old in OLD_NAMES]
    assert len(said) == len(set(said))


def test_the_table_goes_before_likeness() -> None:
    """An old name is led to what replaced it, however it is spelt."""
    assert nearest_name("replica.lag.max.messages", broker.KEYS) == "replica.lag.time.max.ms"
    assert nearest_name("port", broker.KEYS) == "listeners"


def test_a_clients_name_leads_nowhere_on_a_broker() -> None:
    """The explanation says whose setting it is."""
    assert nearest_name("producer.type", broker.KEYS) is None
    assert explain("producer.type", broker.KEYS).startswith("unknown setting of the producer (")


def test_an_unheard_of_name() -> None:
    """Nothing is guessed where nothing is close."""
    assert explain("zzz", broker.KEYS) == "unknown setting"
