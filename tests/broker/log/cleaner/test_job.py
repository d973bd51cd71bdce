"""What broker and cleaner process tell each other."""

import pytest

from barnabas_broker.log.cleaner.job import (
    Failed,
    Finished,
    GroupReady,
    Job,
    Message,
    Trouble,
    decode,
    encode,
)

JOB = Job(
    directory="/data/orders-3", segments=[0, 10], first_dirty=0, first_uncleanable=10,
    now_ms=1, delete_retention_ms=2, segment_bytes=3, segment_index_bytes=4,
    index_interval_bytes=5, map_bytes=6, map_load_factor=0.9, io_bytes=7,
    bytes_per_second=1.7976931348623157e308, producers=[(1, -1, 0)],
)  # fmt: skip
FINISHED = Finished(
    clean_to=10, records_read=9, records_kept=8, bytes_read=7, bytes_kept=6, keyless=5,
    map_utilization=0.5, seconds=1.5,
)  # fmt: skip


@pytest.mark.parametrize(
    "message",
    [
        JOB,
        GroupReady(replaced=[0, 10]),
        FINISHED,
        Failed(trouble=Trouble.CORRUPT, reason="at position 5:\nno batch"),
        Failed(trouble=Trouble.IO, reason="full", errno=28),
    ],
)
def test_a_line_each(message: Message) -> None:
    """Every message goes through the pipe as one line and comes out as it was."""
    line = encode(message)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode(line) == message


@pytest.mark.parametrize(
    "line", [b"", b"{}", b"[]", b'{"kind": "Other"}', b'{"kind": "GroupReady", "other": 1}']
)
def test_other_lines(line: bytes) -> None:
    """What is no message is an error, whatever it is."""
    with pytest.raises(ValueError, match=r"char|message"):
        decode(line)
