"""Metadata: what clients of every age are told about brokers and topics."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.security.acls import CLUSTER_NAME, AclOperation, ResourceType
from barnabas_broker.security.authorizer import Authorizer
from barnabas_broker.server.requests.handlers.metadata import (
    GLANCES,
    HANDLER,
    KEPT_PARTITIONS_MIN,
    handle,
)
from barnabas_broker.zk.store import SetData
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import ZERO_UUID
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from tests.broker.controller.embedded import Denying, Embedded

LATEST = HANDLER.versions.max
NOT_REQUESTED = -(2**31)


@pytest.fixture
def embedded(tmp_path: Path) -> Embedded:
    """A broker with one topic of two partitions."""
    embedded = Embedded(tmp_path)
    embedded.create(NewTopic(name="a", num_partitions=2))
    return embedded


def ask(
    embedded: Embedded,
    *names: str,
    version: int = LATEST,
    listener: str = "PLAINTEXT",
    authorizer: Authorizer | None = None,
    create: bool = False,
    operations: bool = False,
) -> MetadataResponse:
    """Ask about topics by name, as that version of a client does; the answer as it decodes it."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=create,
        include_topic_authorized_operations=operations,
        include_cluster_authorized_operations=operations and version <= 10,
    )
    return send(embedded, request, version=version, listener=listener, authorizer=authorizer)


def send(
    embedded: Embedded,
    request: MetadataRequest,
    *,
    version: int = LATEST,
    listener: str = "PLAINTEXT",
    authorizer: Authorizer | None = None,
) -> MetadataResponse:
    """Send a request and read the answer in the given version."""
    response = embedded.ask(
        handle, request, embedded.call(version, listener=listener, authorizer=authorizer)
    )
    body = response if isinstance(response, bytes) else codec.encode(response, version)
    return codec.decode(MetadataResponse, body, version)


def errors(response: MetadataResponse) -> dict[str | None, int]:
    """The error of each topic."""
    return {topic.name: topic.error_code for topic in response.topics}


@pytest.mark.parametrize("version", range(LATEST + 1))
def test_every_version_returns_brokers_and_leaders(embedded: Embedded, version: int) -> None:
    """The shape grew over the years; the essence has been the same since the first version."""
    response = ask(embedded, "a", version=version)
    assert [(broker.node_id, broker.host, broker.port) for broker in response.brokers] == [
        (1, "plain.example", 9092)
    ]
    topic = response.topics[0]
    assert (topic.name, topic.error_code) == ("a", ErrorCode.NONE)
    assert [
        (each.partition_index, each.leader_id, each.replica_nodes, each.isr_nodes, each.error_code)
        for each in topic.partitions
    ] == [(0, 1, [1], [1], 0), (1, 1, [1], [1], 0)]
    if version >= 1:
        assert (response.controller_id, response.brokers[0].rack) == (1, "here")
    if version >= 2:
        assert response.cluster_id == embedded.image.cluster_id
    if version >= 7:
        assert topic.partitions[0].leader_epoch == 0
    if version >= 10:
        assert topic.topic_id == embedded.image.topics["a"].id


def test_all_and_none(embedded: Embedded) -> None:
    """Version 0 asks for all topics with an empty list; later ones with null."""
    embedded.create("b")
    everything, nothing = MetadataRequest(topics=None), MetadataRequest(topics=[])
    assert list(errors(send(embedded, nothing, version=0))) == ["a", "b"]
    assert list(errors(send(embedded, nothing, version=1))) == []
    assert list(errors(send(embedded, everything, version=1))) == ["a", "b"]
    assert list(errors(send(embedded, everything))) == ["a", "b"]


def test_addresses_are_those_of_the_listener(embedded: Embedded) -> None:
    """A client that came in on one listener is never sent to another."""
    secure = ask(embedded, "a", listener="SECURE").brokers[0]
    assert (secure.host, secure.port) == ("secure.example", 9093)


@pytest.mark.parametrize(
    ("version", "error"),
    [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)],
)
def test_a_listener_that_the_leader_lacks(
    embedded: Embedded, version: int, error: ErrorCode
) -> None:
    """Newer clients are told the real reason, all that there is no leader for them."""
    response = ask(embedded, "a", version=version, listener="INNER")
    assert response.brokers == []
    partition = response.topics[0].partitions[0]
    assert (partition.error_code, partition.leader_id) == (error, -1)


def test_an_unknown_topic_is_not_made_without_consent(tmp_path: Path) -> None:
    """Both the broker's setting and the request must allow it."""
    refusing = tmp_path / "refusing"
    refusing.mkdir()
    for embedded, create in (
        (Embedded(tmp_path), False),
        (Embedded(refusing, {"auto.create.topics.enable": "false"}), True),
    ):
        response = ask(embedded, "new", "not valid", create=create)
        assert errors(response) == {
            "new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "not valid": ErrorCode.INVALID_TOPIC_EXCEPTION,
        }
        assert embedded.image.topics == {}


def test_asking_about_a_topic_makes_it(embedded: Embedded) -> None:
    """The client is to ask again, as with Kafka; names that cannot be are told apart."""
    embedded.create("x.y")
    response = ask(embedded, "new", "a", "x_y", "not valid", "new", create=True)
    assert errors(response) == {
        "new": ErrorCode.LEADER_NOT_AVAILABLE,
        "a": ErrorCode.NONE,
        "x_y": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "not valid": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    made = ask(embedded, "new").topics[0]
    assert (made.topic_id, made.partitions[0].leader_id) == (embedded.image.topics["new"].id, 1)


def test_clients_before_version_4_cannot_object_to_creation(embedded: Embedded) -> None:
    """They have no flag; the broker's setting alone decides."""
    request = codec.decode(
        MetadataRequest,
        codec.encode(MetadataRequest(topics=[MetadataRequestTopic(name="new")]), 3),
        3,
    )
    assert errors(send(embedded, request, version=3)) == {"new": ErrorCode.LEADER_NOT_AVAILABLE}
    assert "new" in embedded.image.topics


def test_asking_about_all_topics_makes_none(embedded: Embedded) -> None:
    """There is no name to make one of."""
    send(embedded, MetadataRequest(topics=None, allow_auto_topic_creation=True))
    assert list(embedded.image.topics) == ["a"]


def test_topics_can_be_asked_for_by_id(embedded: Embedded) -> None:
    """Version 12: the id alone is enough, and an unknown one is an error of its own."""
    known, unknown = embedded.image.topics["a"].id, UUID(int=99)
    asked = [MetadataRequestTopic(name=None, topic_id=each) for each in (known, unknown)]
    found, missing = send(embedded, MetadataRequest(topics=asked)).topics
    assert (found.name, found.topic_id, len(found.partitions)) == ("a", known, 2)
    assert (missing.name, missing.topic_id) == (None, unknown)
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize(
    "asked",
    [
        MetadataRequestTopic(name=None, topic_id=UUID(int=5)),
        MetadataRequestTopic(name="a", topic_id=UUID(int=5)),
    ],
)
def test_ids_are_refused_where_they_were_not_yet_served(
    embedded: Embedded, version: int, asked: MetadataRequestTopic
) -> None:
    """The field exists in versions 10 and 11, but Apache brokers refuse it there."""
    response = send(embedded, MetadataRequest(topics=[asked]), version=version)
    assert [topic.error_code for topic in response.topics] == [ErrorCode.INVALID_REQUEST]


def test_internal_topics_are_marked(tmp_path: Path) -> None:
    """Consumers that subscribe by pattern leave them out."""
    embedded = Embedded(tmp_path, {"offsets.topic.replication.factor": "1"})
    first = ask(embedded, "__consumer_offsets", "a", create=True)
    response = ask(embedded, "__consumer_offsets", "a")
    for answer in (first, response):
        assert [topic.is_internal for topic in answer.topics] == [True, False]
    assert len(response.topics[0].partitions) == 50


def test_a_failed_creation_has_an_error(tmp_path: Path) -> None:
    """Three replicas on one broker: the error a user of defaults meets in production."""
    embedded = Embedded(tmp_path, {"offsets.topic.replication.factor": "3"})
    response = ask(embedded, "__consumer_offsets", create=True)
    assert errors(response) == {"__consumer_offsets": ErrorCode.INVALID_REPLICATION_FACTOR}


def test_hidden_topics_look_like_no_topics(embedded: Embedded) -> None:
    """Who may not describe a topic learns neither that it exists nor its id."""
    denying = Denying((AclOperation.DESCRIBE, ResourceType.TOPIC, None))
    response = ask(embedded, "a", "none", authorizer=denying, create=True)
    assert errors(response) == dict.fromkeys(("a", "none"), ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert {topic.topic_id for topic in response.topics} == {ZERO_UUID}
    assert send(embedded, MetadataRequest(topics=None), authorizer=denying).topics == []
    assert list(embedded.image.topics) == ["a"]
    asked = [MetadataRequestTopic(name=None, topic_id=embedded.image.topics["a"].id)]
    by_id = send(embedded, MetadataRequest(topics=asked), authorizer=denying).topics[0]
    assert (by_id.name, by_id.error_code) == (None, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def test_large_answers_are_kept_by_what_is_in_them(embedded: Embedded) -> None:
    """Who asks, how and when decides what is in one; nobody gets what was made for another."""
    embedded.create(NewTopic(name="large", num_partitions=KEPT_PARTITIONS_MIN))
    everybody = MetadataRequest(topics=None)
    first = send(embedded, everybody)
    assert send(embedded, everybody) == first
    assert errors(first) == {"a": 0, "large": 0}
    assert len(first.topics[1].partitions) == KEPT_PARTITIONS_MIN
    assert len(embedded.image.memo[handle.__module__, "bodies"]) == 1
    denying = Denying((AclOperation.DESCRIBE, ResourceType.TOPIC, "a"))
    assert errors(send(embedded, everybody, authorizer=denying)) == {"large": 0}
    assert errors(ask(embedded, "a", "large", authorizer=denying)) == {
        "a": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "large": 0,
    }
    assert errors(ask(embedded, "a", "large")) == {"a": 0, "large": 0}
    assert ask(embedded, "large", operations=True).topics[0].topic_authorized_operations == 3576
    assert ask(embedded, "large").topics[0].topic_authorized_operations == NOT_REQUESTED
    old = send(embedded, MetadataRequest(topics=None, allow_auto_topic_creation=False), version=5)
    assert errors(old) == {"a": 0, "large": 0}
    embedded.create(NewTopic(name="later", num_partitions=1))
    assert errors(send(embedded, everybody)) == {"a": 0, "large": 0, "later": 0}


def test_cached_responses_are_bounded(embedded: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that ask for ever other sets of topics do not fill memory."""
    for name in ("x", "y", "z"):
        embedded.create(NewTopic(name=name, num_partitions=KEPT_PARTITIONS_MIN))
    monkeypatch.setattr("barnabas_broker.server.requests.handlers.metadata.KEPT_BYTES_MAX", 1500)
    for names in ("x", "y", "z", "xy", "xyz", "x"):
        assert errors(ask(embedded, *names)) == dict.fromkeys(names, 0)
        kept = embedded.image.memo[handle.__module__, "bodies"]
        assert sum(map(len, kept.values())) <= 1500 or len(kept) == 1


class Glanced(list[MetadataRequestTopic]):
    """Topics asked for, and how many of them have been looked at in passing."""

    looks = 0

    def __iter__(self) -> Iterator[MetadataRequestTopic]:
        for topic in super().__iter__():
            self.looks += 1
            yield topic


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("by_id", [True, False])
def test_others_have_their_turn_between_the_topics_asked_for(
    embedded: Embedded, *, create: bool, by_id: bool
) -> None:
    """Also before any is answered for: a hundred thousand names are not gone through at once."""
    topics = [
        MetadataRequestTopic(name=None, topic_id=UUID(int=n))
        if by_id
        else MetadataRequestTopic(name="..")
        for n in range(10, 2000)
    ]
    request = MetadataRequest(topics=Glanced(topics), allow_auto_topic_creation=create)
    glanced = request.topics
    assert isinstance(glanced, Glanced)
    work = handle(request, embedded.call(LATEST if by_id else LATEST - 1))
    before = at_most = 0
    for _ in work:
        at_most = max(at_most, glanced.looks - before)
        before = glanced.looks
    assert glanced.looks >= len(topics)
    # At most as many are left over where looking begins anew.
    assert at_most <= 2 * GLANCES


def test_others_have_their_turn_between_hidden_topics(embedded: Embedded) -> None:
    """Who may know of none of very many topics has the broker look at all of them too."""
    embedded.create(*(f"hidden-{n}" for n in range(50)))
    denying = Denying((AclOperation.DESCRIBE, ResourceType.TOPIC, None))
    work = handle(MetadataRequest(topics=None), embedded.call(LATEST, authorizer=denying))
    assert len(list(work)) >= 50


def test_making_topics_needs_a_right_on_the_cluster_or_the_topic(embedded: Embedded) -> None:
    """Either is enough."""
    cluster = (AclOperation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
    topic = (AclOperation.CREATE, ResourceType.TOPIC, "forbidden")
    response = ask(
        embedded, "forbidden", "allowed", authorizer=Denying(cluster, topic), create=True
    )
    assert errors(response) == {
        "forbidden": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "allowed": ErrorCode.LEADER_NOT_AVAILABLE,
    }


@pytest.mark.parametrize("version", [8, 10])
def test_authorized_operations_are_returned_on_request(embedded: Embedded, version: int) -> None:
    """Topics and, up to version 10, the cluster (KIP-430)."""
    silent = ask(embedded, "a", version=version)
    assert silent.topics[0].topic_authorized_operations == NOT_REQUESTED
    assert silent.cluster_authorized_operations == NOT_REQUESTED
    response = ask(embedded, "a", "none", version=version, operations=True)
    assert [topic.topic_authorized_operations for topic in response.topics] == [3576, 3576]
    assert response.cluster_authorized_operations == 8096
    denying = Denying((AclOperation.DESCRIBE, ResourceType.CLUSTER, None))
    hidden = ask(embedded, "a", version=version, operations=True, authorizer=denying)
    assert hidden.cluster_authorized_operations == 0


def test_the_oldest_clients_see_only_live_brokers(embedded: Embedded) -> None:
    """Version 0 leaves out replicas without an address and says so with an error."""
    elsewhere = b'{"version":3,"partitions":{"0":[1,9]},"topic_id":"9kGS9sbSQ0eRKIYI4JWbnw"}'
    embedded.create("b")
    embedded.store.commit([SetData("/brokers/topics/b", elsewhere)], now_ms=1)
    embedded.restart()

    def partition(version: int) -> MetadataResponseTopic:
        return ask(embedded, "b", version=version).topics[0]

    old, new = partition(0).partitions[0], partition(5).partitions[0]
    assert (old.replica_nodes, old.error_code) == ([1], ErrorCode.REPLICA_NOT_AVAILABLE)
    assert (new.replica_nodes, new.error_code) == ([1, 9], ErrorCode.NONE)
    assert new.offline_replicas == [9]
