"""Shares of what many want."""

from collections import Counter

from barnabas_broker.security.principals import ANONYMOUS
from barnabas_broker.server.process import fair_queue
from barnabas_broker.server.process.fair_queue import FairQueue, flow_of


def test_a_newcomer_waits_for_one_item_of_each_flow_at_most() -> None:
    """However many of the others wait, and however long."""
    queue: FairQueue[str] = FairQueue()
    for number in range(100):
        for flow in "ab":
            queue.push(f"{flow}{number}", flow, 64)
    for _ in range(50):
        queue.pop()
    queue.push("new", "c", 1)
    assert "new" in [queue.pop() for _ in range(3)]


def test_each_flow_gets_the_same_share_of_the_cost() -> None:
    """Who asks for a tenth each time comes ten times as often."""
    queue: FairQueue[str] = FairQueue()
    for _ in range(1000):
        queue.push("small", "small", 10)
        queue.push("large", "large", 100)
    served = Counter(queue.pop() for _ in range(550))
    assert served["small"] in range(495, 506)


def test_in_a_flow_the_first_comes_first() -> None:
    """Whatever they cost."""
    queue: FairQueue[int] = FairQueue()
    for number, cost in enumerate((9, 1, 5)):
        queue.push(number, "flow", cost)
    assert [queue.pop() for _ in range(3)] == [0, 1, 2]


def test_idle_addresses_are_forgotten() -> None:
    """Addresses are the clients' to invent."""
    queue: FairQueue[int] = FairQueue()
    for number in range(10 * fair_queue.FORGOTTEN_BEYOND):
        queue.push(number, number, 1)
        queue.pop()
        queue.push(number, number, 1)
        queue.pop()
    assert len(queue._ends) <= fair_queue.FORGOTTEN_BEYOND + 2


def test_flows_that_come_once_are_forgotten() -> None:
    """Each is new, so virtual time stands still, and all would be owed something for ever."""
    queue: FairQueue[int] = FairQueue()
    for number in range(3 * fair_queue.FLOWS_MAX):
        queue.push(number, number, 1)
        queue.pop()
    assert len(queue._ends) <= fair_queue.FLOWS_MAX + 2


def test_flows_of_an_address_differ_by_magnitude() -> None:
    """Bombs of kilobytes are another flow than sends of megabytes."""
    bomb, send = (flow_of(ANONYMOUS, "10.0.0.1", size) for size in (60_000, 3_600_000))
    assert bomb != send
    assert bomb != flow_of(ANONYMOUS, "10.0.0.2", 60_000)
    assert send == flow_of(ANONYMOUS, "10.0.0.1", 3_700_000)
