"""What coordinators share: see also the tests of their shells, which run it in a broker."""

from barnabas_broker.coordinator.runtime import NO_PRODUCER, Limits
from barnabas_kafka.records.compression import Codec


def test_records_are_nobody_s_and_plain_unless_said_otherwise() -> None:
    """A turn without a producer is part of no transaction."""
    assert NO_PRODUCER == (-1, -1)
    assert Limits(load_buffer_bytes=1, timeout_ms=1).codec is Codec.NONE
