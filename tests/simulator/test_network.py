"""Messages reach the process they were sent to, or nobody."""

from simulator.events import Events
from simulator.network import Network


def network() -> tuple[Events, Network, list[str]]:
    """A network of two brokers that loses nothing, and what has arrived."""
    events = Events(1)
    made = Network(events, loss=0.0, doubling=0.0)
    made.begin(1, 1)
    made.begin(2, 1)
    return events, made, []


def test_a_message_arrives() -> None:
    """After its delay, once."""
    events, made, got = network()
    made.send(1, 2, "hello", got.append, "hello", delay_ms=7)
    events.run(7)
    assert got == []
    events.run(8)
    assert got == ["hello"]


def test_a_later_life_gets_no_earlier_mail() -> None:
    """A message to a process that has ended since is lost; one from it is not."""
    events, made, got = network()
    made.send(1, 2, "hello", got.append, "to the dead", delay_ms=5)
    made.send(2, 1, "hello", got.append, "from the dead", delay_ms=5)
    made.end(2)
    made.send(1, 2, "hello", got.append, "to nobody", delay_ms=5)
    made.begin(2, 2)
    events.run(10)
    assert got == ["from the dead"]


def test_cuts_are_one_way_and_counted() -> None:
    """What is cut twice is mended twice."""
    events, made, got = network()
    made.cut(1, 2)
    made.cut(1, 2)
    made.mend(1, 2)
    made.send(1, 2, "hello", got.append, "there")
    made.send(2, 1, "hello", got.append, "back")
    made.mend(1, 2)
    made.mend(1, 2)
    events.run(500)
    made.send(1, 2, "hello", got.append, "mended")
    events.run(1_000)
    assert got == ["back", "mended"]


def test_a_paused_process_does_all_of_it_later() -> None:
    """Messages and timers wait for it."""
    events, made, got = network()
    made.pause(2, 100)
    made.send(1, 2, "hello", got.append, "message", delay_ms=3)
    made.later(2, 1, 5, "timer", got.append, "timer")
    events.run(100)
    assert got == []
    events.run(101)
    assert got == ["message", "timer"]
