"""The ledger: what is entered, what is an orphan, and what protects a topic."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas_operator.api.reading import read_topic
from barnabas_operator.plan.ledger import (
    FORMAT,
    LedgerEntry,
    Present,
    next_ledger,
    parse_former_ledger,
)
from barnabas_operator.plan.orphans import orphans
from barnabas_operator.plan.shards import SHARD_BYTES, Stored, change, parse
from barnabas_operator.plan.topics import owners
from tests.operator import examples

CLUSTER = "quickstart"
ENTRY = LedgerEntry(resource="resource", uid="u")


def _present(**spec: Any) -> Present:
    return Present.of([examples.topic("another", **spec)], CLUSTER)


def test_topics_that_go_with_their_resources_are_entered() -> None:
    """With name, uid and id; one that is not managed keeps its entry, one that is retained not."""
    ledger = {"packages": ENTRY, "gone": ENTRY}
    retained = owners([read_topic(examples.topic())])
    assert next_ledger(ledger, retained, {}) == {"gone": ENTRY}
    deleted = owners([read_topic(examples.topic(deletionPolicy="Delete"))])
    assert next_ledger({}, deleted, {}) == {}
    assert next_ledger(ledger, deleted, {}) == ledger
    assert next_ledger(ledger, deleted, {"packages": "id"})["packages"] == LedgerEntry(
        resource="packages", uid="uid-of-packages", topic_id="id"
    )


def test_an_orphan_has_neither_name_nor_uid_nor_topic_in_the_api() -> None:
    """One of the three is enough to protect it."""
    assert orphans({"t": ENTRY}, _present()) == ["t"]
    assert orphans({"t": LedgerEntry(resource="another", uid="u")}, _present()) == []
    assert orphans({"t": LedgerEntry(resource="r", uid="uid-of-another")}, _present()) == []
    assert orphans({"t": ENTRY}, _present(topicName="t")) == []
    assert orphans({"another": ENTRY}, _present()) == []


def test_an_entry_without_uid_is_not_taken_for_another_without_one() -> None:
    """As an older version wrote it, and as resources of a file are."""
    document = examples.topic("another")
    del document["metadata"]["uid"]
    present = Present.of([document], CLUSTER)
    assert orphans({"t": LedgerEntry(resource="r")}, present) == ["t"]


def test_a_topic_of_another_cluster_protects_none_of_its_name() -> None:
    """Two clusters of a namespace may have topics of one name; an unknown cluster may be ours."""
    assert orphans({"t": ENTRY}, _present(topicName="t", cluster="other")) == ["t"]
    assert orphans({"t": ENTRY}, _present(topicName="t", cluster={"name": "other"})) == []
    no_spec = {"metadata": {"name": "t"}, "spec": None}
    assert orphans({"t": ENTRY}, Present.of([no_spec], CLUSTER)) == []


def _stored(texts: dict[int, str], count: int) -> tuple[Stored[LedgerEntry], dict[int, str]]:
    """A ledger of so many topics, and the texts of all its shards."""
    entries = {f"topic-{number:05}": ENTRY for number in range(count)}
    stored, changed = change(parse(texts, FORMAT), entries, FORMAT)
    return stored, {**texts, **changed}


def test_a_ledger_is_read_as_it_was_written() -> None:
    """Lines that cannot be parsed stay in their shard as they are."""
    stored, texts = _stored({1: "newer\n"}, 5000)
    assert parse(texts, FORMAT) == stored
    assert len(stored.entries) == 5000
    assert stored.unparsed == {1: ("newer",)}
    assert texts[1].startswith("newer\n")


def test_shards_have_bounds() -> None:
    """A ConfigMap may hold 1 MiB; a ledger of any length fits into several."""
    _, texts = _stored({}, 10_000)
    assert len(texts) > 1
    assert all(len(text) <= SHARD_BYTES for text in texts.values())


def test_a_change_is_a_write_of_the_shards_that_it_concerns() -> None:
    """Entries stay where they are, however many others come and go."""
    stored, texts = _stored({}, 10_000)
    last = max(texts)
    entries = dict(stored.entries)
    assert change(stored, entries, FORMAT)[1] == {}
    del entries["topic-00000"]
    fewer, changed = change(stored, entries, FORMAT)
    assert list(changed) == [0]
    entries["topic-09999"] = LedgerEntry(resource="r", uid="u", topic_id="id")
    assert list(change(fewer, entries, FORMAT)[1]) == [last]
    entries["another"] = ENTRY
    assert list(change(fewer, entries, FORMAT)[1]) == sorted({0, last})


def test_the_ledger_of_an_earlier_version() -> None:
    """It had retained topics too, and an item for each; what cannot be parsed becomes a line."""
    data = {
        "old": '{"resource": "old", "uid": "u", "deletionPolicy": "Delete"}',
        "retained": '{"resource": "r", "deletionPolicy": "Retain"}',
        "newer": '{"v": 2}',
    }
    entries, lines = parse_former_ledger(data)
    assert entries == {"old": LedgerEntry(resource="old", uid="u")}
    stored, texts = change(Stored[LedgerEntry](), entries, FORMAT, lines)
    assert parse(texts, FORMAT) == stored
    assert stored.unparsed == {0: lines}


@pytest.mark.parametrize("line", ["1", '{"topic": "t", "resource": ""}', '{"topic": "t"}'])
def test_an_entry_without_resource_is_none(line: str) -> None:
    """It would protect nothing and be deleted at once."""
    assert parse({0: line}, FORMAT).entries == {}
