"""Every row of the start-up decision tables."""

from itertools import product
from typing import Any

import pytest

from barnabas_broker.log.recovery import (
    ENDS,
    FILES,
    SCANS,
    SEGMENTS,
    EndAction,
    FileAction,
    ScanResult,
    SegmentAction,
    SegmentFacts,
    decide_after_scan,
    decide_end,
    decide_files,
    decide_segment,
    is_stale,
    matching,
    superseded,
)
from barnabas_broker.log.truncated_logs import TruncatedLogs
from barnabas_kafka.ids import TopicPartition


@pytest.mark.parametrize("rows", [FILES, SEGMENTS, ENDS], ids=["files", "segments", "ends"])
def test_of_all_combinations_of_facts_each_has_exactly_one_row(rows: Any) -> None:
    """What a crash can leave is decided, and decided once; and no row is for nothing."""
    used = set()
    for facts in product((False, True), repeat=len(rows[0][1])):
        true_of_it = [
            number
            for number, (_, wanted, _) in enumerate(rows)
            if all(each in (None, seen) for each, seen in zip(wanted, facts, strict=True))
        ]
        assert len(true_of_it) == 1, facts
        label, _, decision = rows[true_of_it[0]]
        assert matching(rows, facts) == (label, decision)
        used.update(true_of_it)
    assert used == set(range(len(rows)))


def test_every_end_of_a_scan_has_its_row() -> None:
    """Labels are those of the module's text, each once."""
    assert set(SCANS) == set(ScanResult)
    assert sorted(each.row for each in SCANS.values()) == ["T1", "T2", "T3", "T4", "T5"]


def row_of(name: str, *others: str) -> tuple[str, FileAction]:
    decisions = {entry.name: entry for entry in decide_files([name, *others])}
    return decisions[name].row, decisions[name].action


@pytest.mark.parametrize(
    ("name", "others", "expected"),
    [
        ("00000000000000000005.log.deleted", (), ("F1", FileAction.DELETE)),
        ("00000000000000000005.snapshot.deleted", (), ("F1", FileAction.DELETE)),
        ("00000000000000000005.log.cleaned", (), ("F2", FileAction.DELETE)),
        (
            "00000000000000000005.log.swap",
            ("00000000000000000003.log.cleaned",),
            ("F3", FileAction.DELETE),
        ),
        (
            "00000000000000000002.log.swap",
            ("00000000000000000003.log.cleaned",),
            ("F4", FileAction.COMPLETE),
        ),
        ("00000000000000000005.index.swap", (), ("F4", FileAction.COMPLETE)),
        ("00000000000000000005.index", (), ("F5", FileAction.DELETE)),
        ("00000000000000000005.timeindex", (), ("F5", FileAction.DELETE)),
        ("00000000000000000005.txnindex", (), ("F5", FileAction.DELETE)),
        (
            "00000000000000000005.index",
            ("00000000000000000005.log.swap",),
            ("F7", FileAction.KEEP),
        ),
        ("leader-epoch-checkpoint.tmp", (), ("F6", FileAction.DELETE)),
        ("00000000000000000005.snapshot.tmp", (), ("F6", FileAction.DELETE)),
        ("00000000000000000005.log", (), ("F7", FileAction.KEEP)),
        (
            "00000000000000000005.index",
            ("00000000000000000005.log",),
            ("F7", FileAction.KEEP),
        ),
        ("00000000000000000005.snapshot", (), ("F7", FileAction.KEEP)),
        ("leader-epoch-checkpoint", (), ("F7", FileAction.KEEP)),
        ("partition.metadata", (), ("F7", FileAction.KEEP)),
    ],
)
def test_files(name: str, others: tuple[str, ...], expected: tuple[str, FileAction]) -> None:
    """What each kind of file left behind means."""
    assert row_of(name, *others) == expected


@pytest.mark.parametrize(
    ("next_base_offset", "clean", "trusted"),
    [(99, False, True), (100, False, True), (101, False, False), (101, True, True),
     (None, True, False)],
)  # fmt: skip
def test_segments_below_the_recovery_point_are_not_scanned(
    next_base_offset: int | None, clean: bool, trusted: bool
) -> None:
    """All below the recovery point was synced; the last segment is always looked at."""
    facts = SegmentFacts(
        base_offset=0, next_base_offset=next_base_offset, clean=clean, recovery_point=100
    )
    assert facts.will_be_trusted is trusted
    assert facts.may_be_short is (next_base_offset is not None and not trusted)


@pytest.mark.parametrize(
    ("row", "facts"),
    [
        ("S1", {"clean": True}),
        ("S1", {"clean": True, "next_base_offset": None}),
        ("S2", {"recovery_point": 100}),
        ("S3", {"clean": True, "missing_indexes": (".index",)}),
        ("S6", {"clean": True, "overflows": True}),
        ("S6", {"recovery_point": 100, "overflows": True}),
        ("S3", {"recovery_point": 100, "missing_indexes": (".timeindex",)}),
        ("S4", {"clean": True, "corruption": "it runs backwards"}),
        ("S5", {"recovery_point": 99}),
        ("S5", {"recovery_point": 1000, "next_base_offset": None}),
    ],
)
def test_segments(row: str, facts: dict[str, object]) -> None:
    """A segment is trusted only if it was synced or closed, with indexes that make sense."""
    known: dict[str, object] = {
        "base_offset": 0,
        "next_base_offset": 100,
        "clean": False,
        "recovery_point": 0,
        **facts,
    }
    decision = decide_segment(SegmentFacts(**known))  # type: ignore[arg-type]
    assert decision.row == row
    trusted = row in ("S1", "S2")
    assert decision.action is (SegmentAction.TRUST if trusted else SegmentAction.RECOVER)
    assert decision.reason


@pytest.mark.parametrize(
    ("result", "row", "empty_segment", "drop_later"),
    [
        (ScanResult.WHOLE, "T1", False, False),
        (ScanResult.TORN, "T2", False, True),
        (ScanResult.OUT_OF_RANGE, "T3", True, True),
        (ScanResult.SHORT, "T4", False, True),
        (ScanResult.OVERFLOW, "T5", False, False),
    ],
)
def test_after_a_scan(result: ScanResult, row: str, empty_segment: bool, drop_later: bool) -> None:
    """Behind a hole nothing is the log that was acknowledged."""
    after = decide_after_scan(result)
    assert (after.row, after.empty_segment, after.drop_later) == (row, empty_segment, drop_later)
    assert after.split is (row == "T5")


@pytest.mark.parametrize(
    ("end_offset", "start", "point", "clean", "expected"),
    [
        (50, 0, 20, True, ("E1 R1", EndAction.KEEP, 50, 50)),
        (50, 0, 20, False, ("E1 R2", EndAction.KEEP, 50, 20)),
        (50, 0, 99, False, ("E1 R2", EndAction.KEEP, 50, 50)),
        (50, 50, 50, True, ("E1 R1", EndAction.KEEP, 50, 50)),
        (50, 60, 50, True, ("E2", EndAction.START_EMPTY, 60, 50)),
        (None, 7, 0, True, ("E3", EndAction.START_EMPTY, 7, 0)),
    ],
)
def test_the_ends(
    end_offset: int | None,
    start: int,
    point: int,
    clean: bool,
    expected: tuple[str, EndAction, int, int],
) -> None:
    """Where the log ends, and from where the next recovery would have to look."""
    decision = decide_end(
        end_offset=end_offset, log_start_offset=start, recovery_point=point, clean=clean
    )
    assert decision == expected


def test_completed_compaction_replaces_what_it_compacted() -> None:
    """Every segment from the first swap's base to the last swap's end, and no other."""
    assert superseded([0, 10, 20, 30, 40], [(10, 25), (25, 39)]) == [10, 20, 30]
    assert superseded([0, 10], []) == []


@pytest.mark.parametrize(
    ("row", "clean_end", "end_offset", "stale"),
    [
        ("M2", 7, 7, False),
        ("M2, nothing in it", 0, None, False),
        ("M2, nothing noted", None, 7, False),
        ("M3, longer", 7, 9, True),
        ("M3, shorter", 7, 5, True),
        ("M3, gone", 7, None, True),
    ],
)
def test_a_marker_is_held_against_the_log(
    row: str, clean_end: int | None, end_offset: int | None, stale: bool
) -> None:
    """A clean stop leaves the recovery point at the log end; anything else is another state."""
    assert is_stale(clean_end, end_offset) is stale, row


@pytest.mark.parametrize(
    ("swapped", "replaced"),
    [([], []), ([(10, 20)], [10, 15]), ([(15, 20), (10, 15)], [10, 15]), ([(0, 10)], [0])],
)
def test_a_swap_replaces_what_it_was_made_of(
    swapped: list[tuple[int, int]], replaced: list[int]
) -> None:
    """And not the segment that begins where it ends: nothing else has those records."""
    assert superseded([0, 10, 15, 20, 30], swapped) == replaced


ONE, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


def test_the_last_recovered_log_is_reported_once() -> None:
    """A log that was none of them changes nothing."""
    truncated_logs, reported = TruncatedLogs(), []
    truncated_logs.partitions |= {ONE, OTHER}
    truncated_logs.ended = lambda: reported.append(set(truncated_logs.partitions))
    truncated_logs.trust(ONE)
    truncated_logs.trust(ONE)
    assert (truncated_logs.partitions, reported) == ({OTHER}, [])
    truncated_logs.trust(OTHER)
    truncated_logs.trust(OTHER)
    assert reported == [set()]


def test_truncated_logs_without_a_listener() -> None:
    """Where nothing is said when registering."""
    truncated_logs = TruncatedLogs()
    truncated_logs.partitions.add(ONE)
    truncated_logs.trust(ONE)
    assert not truncated_logs.partitions
