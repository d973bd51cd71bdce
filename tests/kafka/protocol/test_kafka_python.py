"""Our codecs beside those of kafka-python, which another team derived from the same protocol."""

import kafka.protocol.admin
import kafka.protocol.consumer
import kafka.protocol.metadata
import kafka.protocol.producer
import kafka.protocol.sasl
import pytest
from kafka.protocol.api_message import ApiMessage

from barnabas_kafka.protocol.codec import encode
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsResponse
from barnabas_kafka.protocol.schema import Message
from tests.kafka.protocol.samples import MESSAGES, filled


def _foreign_messages() -> dict[str, type[ApiMessage]]:
    """The message classes of kafka-python by name."""
    packages = (
        kafka.protocol.admin,
        kafka.protocol.consumer,
        kafka.protocol.metadata,
        kafka.protocol.producer,
        kafka.protocol.sasl,
    )
    return {
        name: value
        for package in packages
        for name, value in vars(package).items()
        if isinstance(value, type) and issubclass(value, ApiMessage)
    }


FOREIGN = _foreign_messages()
SHARED = [cls for cls in MESSAGES if cls.__name__ in FOREIGN]


@pytest.mark.parametrize("cls", SHARED, ids=lambda cls: cls.__name__)
def test_kafka_python_reads_and_writes_the_same(cls: type[Message]) -> None:
    """kafka-python reads what we write, and what it writes of that is the same again."""
    foreign = FOREIGN[cls.__name__]
    low, high = foreign.valid_versions
    for version in range(max(low, cls.versions.min), min(high, cls.versions.max) + 1):
        for message in (cls(), filled(cls, version)):
            if isinstance(message, ApiVersionsResponse):
                message.error_code = 0  # With an error they take any version for 0.
            encoded = encode(message, version)
            theirs = foreign.decode(encoded, version=version)
            theirs._header = None  # Their reader leaves out what their writer looks at.
            assert bytes(theirs.encode(version=version)) == encoded, version


def test_most_messages_are_shared() -> None:
    """The comparison covers what a client speaks."""
    assert len(SHARED) > 60
