"""``partition.metadata``: the topic id of a log (Kafka's ``PartitionMetadataFile``).

Two lines, ``version: 0`` and ``topic_id:`` with the id in base64, 22 characters.
"""

from __future__ import annotations

import logging
from pathlib import Path
from uuid import UUID

from barnabas_broker.log.checkpoints import MalformedCheckpointError
from barnabas_broker.log.files import read_file, remove_file, replace_file
from barnabas_broker.log.health import StorageError
from barnabas_broker.log.names import PARTITION_METADATA
from barnabas_kafka.ids import uuid_from_base64, uuid_to_base64

_VERSION = 0

_log = logging.getLogger(__name__)


def load(directory: Path, *, clean: bool) -> UUID | None:
    """The topic id of the log in ``directory``; None when it is unknown.

    After an unclean shutdown a malformed file is removed: a caller that knows the id writes it
    again. Raises StorageError for one that was malformed by something else, and OSError.
    """
    path = directory / PARTITION_METADATA
    try:
        return parse(read_file(path))
    except FileNotFoundError:
        return None
    except MalformedCheckpointError as error:
        if clean:
            raise StorageError(directory, f"{PARTITION_METADATA}: {error}") from error
        _log.warning("Removing malformed partition metadata: %s: %s", path, error)
        remove_file(path)
        return None


def write(directory: Path, topic_id: UUID) -> None:
    """Write the topic id; a flush makes it durable."""
    replace_file(directory / PARTITION_METADATA, encode(topic_id), durable=False)


def encode(topic_id: UUID) -> bytes:
    return f"version: {_VERSION}\ntopic_id: {uuid_to_base64(topic_id)}".encode()


def parse(data: bytes) -> UUID:
    fields = dict(
        line.split(": ", 1) for line in data.decode("utf-8", "replace").splitlines() if ": " in line
    )
    try:
        if int(fields["version"]) != _VERSION:
            raise MalformedCheckpointError(f"version {fields['version']} is unknown")
        topic_id = uuid_from_base64(fields["topic_id"].strip())
    except (KeyError, ValueError) as error:
        raise MalformedCheckpointError(f"malformed content {data!r}") from error
    if topic_id.int == 0:
        raise MalformedCheckpointError("the topic id is zero")
    return topic_id
