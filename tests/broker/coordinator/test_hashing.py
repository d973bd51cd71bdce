"""Which partition a group belongs to."""

import pytest

from barnabas_broker.coordinator.hashing import java_hash, partition_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("\U0001f600", 1772899),
    ],
)
def test_strings_hash_as_in_java(text: str, value: int) -> None:
    """Over UTF-16 units, with the overflow of 32 bits."""
    assert java_hash(text) == value


def test_the_smallest_integer_belongs_to_partition_0() -> None:
    """It has no absolute value; Kafka's `Utils.abs` gives 0."""
    assert partition_of("polygenelubricants", 50) == 0
    assert partition_of("hello", 50) == 22
