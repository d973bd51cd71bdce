"""From an offset to whole batches."""

from pathlib import Path

import pytest

from barnabas_broker.log import reading
from barnabas_broker.log.config import LogConfig
from tests.broker.log.samples import batch_of, fill, offsets_in, open_log


@pytest.mark.parametrize("bound", [1, 2])
def test_a_bound_inside_a_batch_hides_the_whole_batch(tmp_path: Path, bound: int) -> None:
    """Nothing above the bound is shown, even where a first batch must be given."""
    log = open_log(tmp_path)
    fill(log, 2, records=3)
    assert log.read(0, 1000, upper_bound=bound).length == 0
    assert offsets_in(log.read(0, 1000, upper_bound=3 + bound).read()) == [0, 1, 2]


def test_a_bound_in_an_earlier_segment_hides_later_ones(tmp_path: Path) -> None:
    """An offset in a gap is served by a later segment only if the bound lies beyond it."""
    log = open_log(tmp_path, LogConfig(segment_bytes=100))
    for offset in (0, 50):
        log.append_as_follower(batch_of(offset=offset, leader_epoch=0), now_ms=0)
    assert log.read(10, 1000, upper_bound=40).length == 0
    assert offsets_in(log.read(10, 1000, upper_bound=51).read()) == [50]


def test_an_empty_slice_has_no_bytes(tmp_path: Path) -> None:
    """It is asked for like any other, and is intact."""
    log = open_log(tmp_path)
    part = reading.empty_slice(log.segments, 7)
    assert (part.length, part.first_offset, part.read(), part.intact) == (0, 7, b"", True)
