"""What a step asks for, and what is done instead when its records are not written."""

from barnabas_broker.coordinator.turns import Turn
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.heartbeat import HeartbeatResponse


def test_answers_stand_where_nobody_depends_on_the_records() -> None:
    """Without a refusal of its own, a failed append changes no answer."""
    turn: Turn[str] = Turn(5)
    turn.answer("w", HeartbeatResponse())
    assert turn.refused(ErrorCode.NOT_COORDINATOR).answers == [("w", HeartbeatResponse())]


def test_a_refusal_makes_other_answers() -> None:
    """From the error of the append."""
    turn: Turn[str] = Turn(5)
    turn.refuse = lambda code, instead: instead.answer("w", HeartbeatResponse(error_code=code))
    (answer,) = turn.refused(ErrorCode.NOT_COORDINATOR).answers
    assert answer == ("w", HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR))
