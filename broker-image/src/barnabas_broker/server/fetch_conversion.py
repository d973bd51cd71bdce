"""Records for clients that do not know the format they are stored in.

Fetch versions 0 and 1 know only format 0, versions 2 and 3 only format 1, and zstd may be sent
from version 10 on (KIP-110). Conversion reads the records into memory, which nobody else's fetch
does; `message.downconversion.enable=false` refuses it.
"""

from typing import Final

from barnabas_broker.log.files import FileSlice
from barnabas_broker.replica.topic_rules import TopicRules
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.records.batch import CorruptBatch
from barnabas_kafka.records.legacy import UnsupportedConversion, batch_positions, down_convert

FIRST_WITH_MAGIC_1: Final = 2
FIRST_WITH_MAGIC_2: Final = 4
FIRST_WITH_ZSTD: Final = 10


def records_for_version(
    stored: FileSlice, version: int, *, fetch_offset: int, rules: TopicRules
) -> FileSlice | bytes:
    """`stored` as a client of that Fetch version can read it.

    Raises KafkaError with UNSUPPORTED_COMPRESSION_TYPE where the topic is zstd and the client
    too old, UNSUPPORTED_VERSION where conversion is switched off.
    """
    if rules.compression_type == "zstd":
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if version >= FIRST_WITH_MAGIC_2:
        return stored
    magic = 1 if version >= FIRST_WITH_MAGIC_1 else 0
    data = stored.read()
    try:
        if all(found <= magic for _, _, found in batch_positions(data)):
            return data
        if not rules.down_conversion:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        return down_convert(data, magic=magic, first_offset=fetch_offset)
    except UnsupportedConversion as error:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(error)) from error
    except CorruptBatch as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
