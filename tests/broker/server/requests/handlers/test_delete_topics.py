"""DeleteTopics: by name, by id, and where it is not allowed."""

from pathlib import Path
from uuid import UUID

import pytest

from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.security.authorizer import Authorizer
from barnabas_broker.server.requests.handlers.delete_topics import HANDLER, handle
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import ZERO_UUID
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from tests.broker.controller.embedded import Denying, Embedded

LATEST = HANDLER.versions.max


@pytest.fixture
def embedded(tmp_path: Path) -> Embedded:
    """A broker with two topics."""
    embedded = Embedded(tmp_path)
    embedded.create("a", "b")
    return embedded


def delete(
    embedded: Embedded,
    *topics: str | UUID | DeleteTopicState,
    version: int = LATEST,
    authorizer: Authorizer | None = None,
) -> list[DeletableTopicResult]:
    """Delete topics by name or id; the answer as a client of that version decodes it."""
    request = DeleteTopicsRequest(timeout_ms=1000)
    for each in topics:
        if version < 6:
            request.topic_names.append(str(each))
        elif isinstance(each, DeleteTopicState):
            request.topics.append(each)
        elif isinstance(each, UUID):
            request.topics.append(DeleteTopicState(topic_id=each))
        else:
            request.topics.append(DeleteTopicState(name=each))
    decoded = codec.decode(DeleteTopicsRequest, codec.encode(request, version), version)
    response = embedded.ask(handle, decoded, embedded.call(version, authorizer=authorizer))
    return codec.decode(DeleteTopicsResponse, codec.encode(response, version), version).responses


@pytest.mark.parametrize("version", range(LATEST + 1))
def test_every_version_deletes_by_name(embedded: Embedded, version: int) -> None:
    """What is gone cannot be deleted again."""
    results = delete(embedded, "a", "none", version=version)
    assert [(each.name, each.error_code) for each in results] == [
        ("a", ErrorCode.NONE),
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert list(embedded.image.topics) == ["b"]


def test_deleting_by_id(embedded: Embedded) -> None:
    """The answer names the topic; an id that is not known is an error of its own."""
    topic_id = embedded.image.topics["a"].id
    found, missing = delete(embedded, topic_id, UUID(int=9))
    assert (found.name, found.topic_id, found.error_code) == ("a", topic_id, ErrorCode.NONE)
    assert (missing.name, missing.topic_id) == (None, UUID(int=9))
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert list(embedded.image.topics) == ["b"]


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (0, ErrorCode.INVALID_REQUEST),
        (2, ErrorCode.INVALID_REQUEST),
        (3, ErrorCode.TOPIC_DELETION_DISABLED),
        (LATEST, ErrorCode.TOPIC_DELETION_DISABLED),
    ],
)
def test_with_deletion_disabled_every_request_is_refused(
    tmp_path: Path, version: int, error: ErrorCode
) -> None:
    """As Apache brokers refuse it; the topic is not even marked."""
    embedded = Embedded(tmp_path, {"delete.topic.enable": "false"})
    embedded.create("a")
    assert [each.error_code for each in delete(embedded, "a", version=version)] == [error]
    embedded.restart()
    assert list(embedded.image.topics) == ["a"]


def test_a_name_and_an_id_at_once_are_refused(embedded: Embedded) -> None:
    """Nobody can tell which is meant, so nothing of the request is done."""
    both = DeleteTopicState(name="a", topic_id=embedded.image.topics["b"].id)
    neither = DeleteTopicState()
    assert [each.error_code for each in delete(embedded, both, "b")] == [
        ErrorCode.INVALID_REQUEST
    ] * 2
    assert delete(embedded, neither)[0].error_code == ErrorCode.INVALID_REQUEST
    assert sorted(embedded.image.topics) == ["a", "b"]


def test_rights(embedded: Embedded) -> None:
    """Deleting needs DELETE; deleting by id must not tell a hidden topic's name."""
    topic_id = embedded.image.topics["a"].id
    no_delete = Denying((AclOperation.DELETE, ResourceType.TOPIC, "a"))
    assert [each.error_code for each in delete(embedded, "a", "b", authorizer=no_delete)] == [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.NONE,
    ]
    hidden = Denying((AclOperation.DESCRIBE, ResourceType.TOPIC, "a"))
    refused = delete(embedded, topic_id, authorizer=hidden)[0]
    assert (refused.name, refused.topic_id) == (None, topic_id)
    assert refused.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    known = delete(embedded, topic_id, authorizer=no_delete)[0]
    assert (known.name, known.error_code) == ("a", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert known.topic_id != ZERO_UUID
    assert list(embedded.image.topics) == ["a"]
