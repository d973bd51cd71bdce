"""Tests of barnabas_kafka.ids."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_kafka.ids import ZERO_UUID, TopicPartition, uuid_from_base64, uuid_to_base64


def test_partition_is_named_like_its_directory() -> None:
    """Topics may contain dashes; the partition follows the last."""
    assert str(TopicPartition("orders-eu", 3)) == "orders-eu-3"


def test_known_ids() -> None:
    """Kafka's own constants in its own text form."""
    assert uuid_to_base64(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_to_base64(UUID(int=1)) == "AAAAAAAAAAAAAAAAAAAAAQ"


@given(st.uuids())
def test_round_trip(value: UUID) -> None:
    """22 characters that are safe in file names and URLs."""
    text = uuid_to_base64(value)
    assert len(text) == 22
    assert uuid_from_base64(text) == value


@pytest.mark.parametrize("text", ["", "AAAA", "A" * 24, "AAAAAAAAAAAAAAAAAAAAA", "ä" * 22])
def test_what_is_not_an_id(text: str) -> None:
    """Anything but sixteen bytes in base64 is refused."""
    with pytest.raises(ValueError, match="an id"):
        uuid_from_base64(text)
