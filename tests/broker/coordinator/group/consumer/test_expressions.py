"""What expressions match is worked out once, in turns, and remembered within bounds."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from barnabas_broker.coordinator.group.consumer import expressions, validation
from barnabas_broker.coordinator.group.consumer.expressions import Expressions
from barnabas_broker.coordinator.group.consumer.member_update import EXPRESSIONS_MAX
from barnabas_kafka.errors import ErrorCode, KafkaError
from tests.broker.coordinator.group.consumer.scenarios import ConsumerScenario

NAMES = [f"topic-{number}" for number in range(20)]
JOINS: dict[str, Any] = {"topic_partitions": [], "rebalance_timeout_ms": 1000}


@contextmanager
def counted_matches() -> Iterator[list[str]]:
    """The names that are held against an expression meanwhile, in order."""
    looked_at: list[str] = []
    compiled = validation.compiled

    class Counting:
        """A matcher that takes down what it is asked."""

        def __init__(self, expression: str) -> None:
            self._matcher = compiled(expression)

        def fullmatch(self, text: str) -> object:
            looked_at.append(text)
            return self._matcher.fullmatch(text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expressions, "compiled", Counting)
        yield looked_at


def test_each_topic_is_matched_once() -> None:
    """However often it is asked; when topics come and go, those that came."""
    known = Expressions()
    known.on_topics(NAMES)
    with counted_matches() as looked_at:
        assert known.matched("topic-1.*") == {"topic-1", *(f"topic-1{n}" for n in range(10))}
        assert sorted(looked_at) == sorted(NAMES)
        known.on_topics(list(NAMES))
        known.matched("topic-1.*")
        assert len(looked_at) == len(NAMES)
        known.on_topics(["topic-1", "topic-100"])
        assert known.matched("topic-1.*") == {"topic-1", "topic-100"}
        assert looked_at[len(NAMES) :] == ["topic-100"]


def test_matching_may_be_interrupted_after_each_topic() -> None:
    """So that others are served; whoever is first remembers the result for all."""
    known = Expressions()
    known.on_topics(NAMES)
    assert len(list(known.matching("topic-.*"))) == len(NAMES)
    assert list(known.matching("topic-.*")) == []


def test_topics_that_come_meanwhile_are_matched_too() -> None:
    """The result is of the topics that there were when it began."""
    known = Expressions()
    known.on_topics(NAMES)
    work = known.matching("topic-.*")
    next(work)
    known.on_topics([*NAMES, "topic-new"])
    for _ in work:
        pass
    assert known.matched("topic-.*") == {*NAMES, "topic-new"}


def test_the_cache_is_bounded() -> None:
    """By number, and by names in the results; what was used longest ago is forgotten."""
    for bounds in ({"remembered_max": 2}, {"matches_max": 2 * len(NAMES)}):
        known = Expressions(**bounds)
        known.on_topics(NAMES)
        for expression in ("topic-.*", "t.*", "topic-.*", "to.*"):
            known.matched(expression)
        assert len(known) == 2
        with counted_matches() as looked_at:
            known.matched("topic-.*")
            assert looked_at == []
            known.matched("t.*")
            assert len(looked_at) == len(NAMES)


def test_a_wrong_expression_is_refused() -> None:
    """And one that would take too much memory, and so time."""
    known = Expressions()
    known.on_topics(NAMES)
    for expression in ("(", "(?:[a-z]?){900}" * 10):
        with pytest.raises(KafkaError) as caught:
            known.matched(expression)
        assert caught.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_members_that_join_match_nothing_again() -> None:
    """Forty members of one expression cost as much as one."""
    scenario = ConsumerScenario(dict.fromkeys(NAMES, 1))
    with counted_matches() as looked_at:
        for number in range(40):
            response = scenario.beat(f"m{number}", 0, subscribed_topic_regex="topic-.*", **JOINS)
            assert response.error_code == ErrorCode.NONE
        assert sorted(looked_at) == sorted(NAMES)


def test_a_group_has_only_so_many_expressions() -> None:
    """Each is matched with every new topic; members with one that is there are welcome."""
    scenario = ConsumerScenario({"t": 1})

    def code(number: int, expression: str) -> int:
        return scenario.beat(f"m{number}", 0, subscribed_topic_regex=expression, **JOINS).error_code

    codes = [code(number, f"t{number}") for number in range(EXPRESSIONS_MAX)]
    assert codes == [ErrorCode.NONE] * EXPRESSIONS_MAX
    assert code(EXPRESSIONS_MAX, "other") == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert code(EXPRESSIONS_MAX, "t0") == ErrorCode.NONE
