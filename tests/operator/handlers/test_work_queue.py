"""The work queue, with a clock of its own."""

from __future__ import annotations

from barnabas_operator.handlers.work_queue import SLOW_S, Slots, WorkQueue
from barnabas_operator.reconcile.reconciler import Key

A, B, C = (Key("ns", name) for name in "abc")


def test_events_that_come_together_are_one_pass() -> None:
    """However often it is asked for."""
    queue = WorkQueue()
    queue.add(A, 1.0)
    queue.add(A, 2.0)
    assert queue.get(2.0) == [A]
    assert queue.get(2.0) == []


def test_a_cluster_has_one_pass_at_a_time() -> None:
    """An event during a pass makes the cluster due right after it."""
    queue = WorkQueue()
    queue.add(A, 1.0)
    queue.get(1.0)
    queue.add(A, 1.5)
    assert queue.get(1.5) == []
    assert queue.wake_at(1.5) is None
    queue.done(A, 1.6, again_in=30.0)
    assert queue.get(1.6) == [A]


def test_the_next_pass_is_due_when_the_last_one_said() -> None:
    """Not earlier, unless there is an event."""
    queue = WorkQueue()
    queue.add(A, 0.0)
    queue.get(0.0)
    queue.done(A, 0.0, again_in=30.0)
    assert queue.wake_at(0.0) == 30.0
    assert queue.get(29.0) == []
    queue.add(A, 29.5)
    assert queue.get(29.5) == [A]


def test_the_longest_due_go_first_and_not_all_at_once() -> None:
    """The number of slots limits the passes, and each cluster gets its turn."""
    queue = WorkQueue(Slots(quick=2))
    for key, at in ((A, 3.0), (B, 1.0), (C, 2.0)):
        queue.add(key, at)
    assert queue.get(5.0) == [B, C]
    assert queue.get(5.0) == []
    assert queue.longest_wait(5.0) == 2.0
    queue.done(B, 5.0, again_in=30.0)
    assert queue.get(5.0) == [A]


def test_failures_are_retried_ever_later() -> None:
    """Up to a minute; a success forgets them."""
    queue = WorkQueue()
    delays = []
    for _ in range(8):
        delays.append(queue.failed(A, 0.0))
        queue.due.clear()
    assert delays == [1, 2, 4, 8, 16, 32, 60, 60]
    queue.done(A, 0.0, again_in=1.0)
    queue.due.clear()
    assert queue.failed(A, 0.0) == 1


def test_a_thousand_failures_still_have_a_delay() -> None:
    """A power of two that overflows would end the controller."""
    queue = WorkQueue(failures={A: 5000})
    assert queue.failed(A, 0.0) == 60


def test_a_users_change_is_acted_on_at_once_in_back_off() -> None:
    """Whether it comes during the pass that fails or while the retry waits."""
    queue = WorkQueue(failures={A: 6})
    queue.add(A, 0.0)
    queue.get(0.0)
    queue.add(A, 0.1, changed=True)
    assert queue.failed(A, 0.2) == 0.0
    assert queue.get(0.2) == [A]
    assert queue.failed(A, 0.3) == 60
    queue.add(A, 5.0, changed=True)
    assert queue.get(5.0) == [A]


def test_events_of_owned_objects_do_not_reset_back_off() -> None:
    """A failing pass may itself change a StatefulSet each time."""
    queue = WorkQueue(failures={A: 6})
    queue.add(A, 0.0)
    queue.get(0.0)
    queue.add(A, 0.1, changed=False)
    assert queue.failed(A, 0.2) == 1.0
    queue.add(A, 0.3, changed=False)
    assert queue.get(0.3) == []
    assert queue.get(1.2) == [A]


def test_a_busy_server_is_left_alone_as_long_as_it_asks() -> None:
    """Retry-After is longer than the first back-off; a minute is the bound."""
    queue = WorkQueue()
    assert queue.failed(A, 0.0, at_least=10.0) == 10.0
    queue.due.clear()
    assert queue.failed(A, 0.0, at_least=9999.0) == 60.0


def test_clusters_that_hang_leave_the_slots_to_the_others() -> None:
    """Twenty hang: all others are served after a second, and for ever after at once."""
    slots = Slots(quick=4, slow=4)
    queue = WorkQueue(slots)
    hanging = [Key("ns", f"hanging-{number:02}") for number in range(20)]
    for key in hanging:
        queue.add(key, 0.0)
    now = 0.0
    started: list[Key] = []
    while len(started) < len(hanging):
        started += queue.get(now)
        assert queue.wake_at(now) in (now + SLOW_S, None)
        now += SLOW_S
    queue.get(now)
    for key in hanging:
        queue.failed(key, now)
    now += 60.0
    assert len(queue.get(now)) == slots.slow
    healthy = [Key("ns", f"healthy-{number}") for number in range(40)]
    served: list[Key] = []
    for key in healthy:
        queue.add(key, now)
    while len(served) < len(healthy):
        got = queue.get(now)
        assert len(got) == slots.quick
        served += got
        for key in got:
            queue.done(key, now, again_in=30.0)
    assert served == sorted(healthy)


def test_a_slow_cluster_that_recovers_is_like_any_other() -> None:
    """One quick pass is enough."""
    queue = WorkQueue(Slots(quick=1, slow=1))
    queue.add(A, 0.0)
    queue.get(0.0)
    queue.failed(A, 10.0)
    assert queue.slow == {A}
    assert queue.get(20.0) == [A]
    queue.done(A, 20.1, again_in=30.0)
    assert queue.slow == set()


def test_a_pass_has_an_age() -> None:
    """The liveness probe asks for the oldest."""
    queue = WorkQueue()
    assert queue.longest_pass(0.0) == (0.0, None)
    queue.add(A, 1.0)
    queue.add(B, 2.0)
    queue.get(1.0)
    queue.get(2.0)
    assert queue.longest_pass(5.0) == (4.0, A)


def test_a_deleted_key_is_dropped() -> None:
    """Otherwise a deleted cluster would be reconciled for ever; a running one is dropped later."""
    queue = WorkQueue()
    for key in (A, B, C):
        queue.add(key, 0.0)
    queue.slots = Slots(quick=1)
    assert queue.get(0.0) == [A]
    assert queue.forget(lambda key: key != B) == [C]
    assert list(queue.due) == [B]
    assert list(queue.running) == [A]


def test_clusters_of_another_leader_stay_in_the_queue() -> None:
    """They start when this operator leads, and do not count as waiting before."""
    leading = False
    queue = WorkQueue(may_run=lambda _: leading)
    queue.add(A, 0.0)
    assert (queue.get(5.0), queue.longest_wait(5.0)) == ([], 0.0)
    leading = True
    assert queue.get(5.0) == [A]
