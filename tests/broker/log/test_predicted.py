"""What a batch may come to when it is inflated."""

import pytest

from barnabas_broker.log.predicted import most_inflated
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec

LIMIT = 1 << 30


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_no_batch_comes_to_more(codec: Codec) -> None:
    """Not even one of nothing but zeros; nor is it said of a codec that all may be so."""
    size = 4 << 20
    batch = build_batch([(1000, None, bytes(size), ())], codec=codec)
    assert size <= most_inflated(batch, limit=LIMIT) < LIMIT


def test_what_has_no_bound_may_come_to_the_limit() -> None:
    """Zstandard, old formats, and what is no batch at all."""
    batch = build_batch([(1000, None, b"x", ())], codec=Codec.ZSTD)
    old = bytearray(batch)
    old[16] = 1
    for records in (batch, old, b"", b"x" * 10):
        assert most_inflated(records, limit=LIMIT) == LIMIT
