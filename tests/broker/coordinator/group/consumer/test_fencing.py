"""Which epochs a member may speak in."""

from uuid import UUID

import pytest

from barnabas_broker.coordinator.group.consumer.fencing import check_epoch
from barnabas_broker.coordinator.group.consumer.member import ConsumerMember
from barnabas_broker.coordinator.group.consumer.records import Partitions
from barnabas_kafka.errors import ErrorCode, KafkaError

ZERO, ONE = (UUID(int=1), 0), (UUID(int=1), 1)
MEMBER = ConsumerMember(id="m", epoch=5, previous_epoch=3, assigned=frozenset({ZERO}))


@pytest.mark.parametrize(
    ("epoch", "owned"),
    [(5, None), (5, frozenset({ONE})), (3, frozenset()), (3, frozenset({ZERO}))],
)
def test_the_epoch_it_has_and_the_one_before(epoch: int, owned: Partitions | None) -> None:
    """The latter may be all that it heard of, if it reads nothing that is not its own."""
    check_epoch(MEMBER, epoch, owned)


@pytest.mark.parametrize(
    ("epoch", "owned"), [(6, None), (4, frozenset()), (3, None), (3, frozenset({ONE}))]
)
def test_any_other_is_fenced(epoch: int, owned: Partitions | None) -> None:
    """It must let go of everything and join again."""
    with pytest.raises(KafkaError) as caught:
        check_epoch(MEMBER, epoch, owned)
    assert caught.value.code is ErrorCode.FENCED_MEMBER_EPOCH
