"""The agenda, as a story with a clock of its own."""

from __future__ import annotations

from barnabas_operator.handlers.agenda import Agenda
from barnabas_operator.reconcile.passes import Key

A, B, C = (Key("ns", name) for name in "abc")


def test_events_that_come_together_are_one_pass() -> None:
    """However often it is asked for."""
    agenda = Agenda()
    agenda.ask(A, 1.0)
    agenda.ask(A, 2.0)
    assert agenda.take(2.0, limit=4) == [A]
    assert agenda.take(2.0, limit=4) == []


def test_a_cluster_has_one_pass_at_a_time() -> None:
    """What happens during a pass makes it due again right after."""
    agenda = Agenda()
    agenda.ask(A, 1.0)
    agenda.take(1.0, limit=4)
    agenda.ask(A, 2.0)
    assert agenda.take(2.0, limit=4) == []
    assert agenda.next_due() is None
    agenda.done(A, 3.0, again_in=30.0)
    assert agenda.take(3.0, limit=4) == [A]


def test_the_next_pass_is_due_when_the_last_one_said() -> None:
    """Not earlier, unless something happens."""
    agenda = Agenda()
    agenda.ask(A, 0.0)
    agenda.take(0.0, limit=4)
    agenda.done(A, 0.0, again_in=30.0)
    assert agenda.next_due() == 30.0
    assert agenda.take(29.0, limit=4) == []
    agenda.ask(A, 29.5)
    assert agenda.take(29.5, limit=4) == [A]


def test_the_longest_due_go_first_and_not_all_at_once() -> None:
    """A limit on passes, and nobody is forgotten over it."""
    agenda = Agenda()
    for key, at in ((A, 3.0), (B, 1.0), (C, 2.0)):
        agenda.ask(key, at)
    assert agenda.take(5.0, limit=2) == [B, C]
    assert agenda.take(5.0, limit=2) == []
    agenda.done(B, 5.0, again_in=30.0)
    assert agenda.take(5.0, limit=2) == [A]


def test_failures_are_tried_again_ever_later() -> None:
    """Up to a minute; a success forgets them."""
    agenda = Agenda()
    assert [agenda.failed(A, 0.0) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    agenda.done(A, 0.0, again_in=1.0)
    assert agenda.failed(A, 0.0) == 1


def test_what_is_named_no_longer_is_forgotten() -> None:
    """Otherwise a deleted cluster would be looked at for ever."""
    agenda = Agenda()
    agenda.ask(A, 0.0)
    agenda.ask(B, 0.0)
    agenda.forget(frozenset({B}))
    assert agenda.take(0.0, limit=4) == [B]
