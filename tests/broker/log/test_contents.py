"""Records out of stored batches of every format."""

import pytest

from barnabas_broker.log import batches
from barnabas_broker.log.contents import records_of
from barnabas_kafka.records.legacy import Message, encode_message
from tests.broker.log.samples import NOW, batch_of


@pytest.mark.parametrize(
    "data",
    [
        batch_of(1, offset=5),
        encode_message(Message(5, NOW, b"key", b"v" * 20, 1, 0)),
        encode_message(Message(5, NOW, b"key", b"v" * 20, 0, 0)),
    ],
)
def test_every_format_gives_offset_key_and_value(data: bytes) -> None:
    """Whoever reads the log need not know who wrote it."""
    (record,) = records_of(batches.parse(data, 0, 0), data)
    assert (record.offset, record.key, record.value) == (5, b"key", b"v" * 20)
