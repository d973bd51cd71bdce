"""Tests of barnabas_kafka.protocol.schema."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from barnabas_kafka.protocol.messages.fetch import LeaderIdAndEpoch, PartitionData
from barnabas_kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)
from barnabas_kafka.protocol.schema import (
    INT32,
    NO_VERSIONS,
    ArrayOf,
    Field,
    Request,
    Struct,
    VersionRange,
    array,
    int32,
    string,
    uuid,
)
from tests.kafka.protocol.samples import MESSAGES


class Inner(Struct):
    """A struct of the tests."""

    number: int = int32("0+", default=-1)


class Outer(Request, api_key=999, versions="1-4", flexible="3+"):
    """A message of the tests."""

    name: str | None = string("1+", nullable="2+")
    topic_id: UUID = uuid("3+")
    numbers: list[int] = array(INT32, "0+")
    inners: list[Inner] | None = array(Inner, "2+", nullable="2+", default=None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3", (3, 3)), ("0-4", (0, 4)), ("2+", (2, 0x7FFF)), ("none", (0, -1))],
)
def test_version_ranges(text: str, expected: tuple[int, int]) -> None:
    """Ranges are read and shown as the protocol's documentation writes them."""
    versions = VersionRange.parse(text)
    assert versions == expected
    assert str(versions) == text


def test_versions_in_a_range() -> None:
    """Both ends belong to a range; nothing belongs to the empty one."""
    versions = VersionRange(2, 4)
    assert [version for version in range(7) if version in versions] == [2, 3, 4]
    assert 0 not in NO_VERSIONS


def test_declared_facts() -> None:
    """A message class knows its key, its versions and which of them are flexible."""
    assert Outer.api_key == 999
    assert Outer.versions == (1, 4)
    assert 2 not in Outer.flexible
    assert 3 in Outer.flexible


def test_defaults_are_fresh() -> None:
    """Lists of two messages are not the same list."""
    first, second = Outer(), Outer()
    first.numbers.append(1)
    assert second == Outer(name="", topic_id=UUID(int=0), numbers=[], inners=None)


def test_instances_have_slots_only() -> None:
    """A misspelt field is an error, when it is set and when it is given."""
    with pytest.raises(AttributeError):
        Outer().nam = "x"  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        Outer(nam="x")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Outer("x")  # type: ignore[call-arg]


def test_equality_and_repr() -> None:
    """Messages are compared and shown by their fields."""
    assert Inner(number=1) == Inner(number=1)
    assert Inner(number=1) != Inner(number=2)
    assert Inner() != 3
    assert MetadataRequest() != MetadataResponse()
    assert repr(Inner(number=7)) == "Inner(number=7)"


def test_unset_structs_cannot_be_changed_by_accident() -> None:
    """The shared default of a struct field equals a fresh one but refuses to be written to."""
    partition = PartitionData()
    assert partition.current_leader == LeaderIdAndEpoch()
    assert LeaderIdAndEpoch() == partition.current_leader
    with pytest.raises(AttributeError, match="set the field to a new one"):
        partition.current_leader.leader_id = 3
    partition.current_leader = LeaderIdAndEpoch(leader_id=3)
    assert PartitionData().current_leader.leader_id == -1


def test_kafka_defaults() -> None:
    """Where Kafka's default is not zero, ours is not either."""
    assert PartitionData().preferred_read_replica == -1
    assert MetadataResponse().controller_id == -1
    assert MetadataResponseBroker().rack is None
    assert MetadataRequest().allow_auto_topic_creation is True


def _structs(cls: type[Struct]) -> Iterator[type[Struct]]:
    yield cls
    for field in cls.__fields__.values():
        kind = field.type.element if isinstance(field.type, ArrayOf) else field.type
        if isinstance(kind, type):
            yield from _structs(kind)


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_declarations_are_consistent(cls: type[Request]) -> None:
    """Null within the versions of a field, tags only in flexible versions and each only once."""
    for struct in _structs(cls):
        tags: list[int] = []
        for name, field in struct.__fields__.items():
            if field.nullable != NO_VERSIONS:
                assert field.nullable.min in field.versions, name
                assert field.nullable.max in field.versions, name
            if field.tag is not None:
                assert field.versions.min in cls.flexible, name
                tags.append(field.tag)
            _check_default(field)
        assert len(tags) == len(set(tags))
        assert struct.__doc__


def _check_default(field: Field) -> None:
    """A default of null needs a version that has null."""
    if field.default is None:
        assert field.nullable != NO_VERSIONS
