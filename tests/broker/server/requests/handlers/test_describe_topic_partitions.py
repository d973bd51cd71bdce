"""DescribeTopicPartitions: page by page through topics and partitions."""

from pathlib import Path
from types import GeneratorType

import pytest

from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.security.authorizer import Authorizer
from barnabas_broker.server.requests.handlers.describe_topic_partitions import handle
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from tests.broker.controller.embedded import Denying, Embedded, finished


@pytest.fixture
def embedded(tmp_path: Path) -> Embedded:
    """A broker with topics of 3, 1 and 2 partitions."""
    embedded = Embedded(tmp_path)
    embedded.create(
        *(NewTopic(name=n, num_partitions=p) for n, p in (("c", 2), ("a", 3), ("b", 1)))
    )
    return embedded


def ask(
    embedded: Embedded,
    *names: str,
    limit: int = 2000,
    cursor: tuple[str, int] | None = None,
    authorizer: Authorizer | None = None,
) -> DescribeTopicPartitionsResponse:
    """Send a request and read the answer."""
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    response = finished(handle(request, embedded.call(0, authorizer=authorizer)))
    assert isinstance(response, DescribeTopicPartitionsResponse)
    return codec.decode(DescribeTopicPartitionsResponse, codec.encode(response, 0), 0)


def page(response: DescribeTopicPartitionsResponse) -> list[tuple[str | None, list[int]]]:
    """Names and partition numbers of a page."""
    return [(t.name, [p.partition_index for p in t.partitions]) for t in response.topics]


def test_all_topics_come_in_the_order_of_their_names(embedded: Embedded) -> None:
    """An empty list means all; without more there is no cursor."""
    response = ask(embedded)
    assert page(response) == [("a", [0, 1, 2]), ("b", [0]), ("c", [0, 1])]
    assert response.next_cursor is None
    first = response.topics[0]
    assert (first.topic_id, first.topic_authorized_operations) == (
        embedded.image.topics["a"].id,
        3576,
    )
    assert first.partitions[0].leader_id == 1


def test_all_topics_are_those_of_one_moment(embedded: Embedded) -> None:
    """One that is deleted between two time slices is no error of a request that did not name it."""
    work = handle(DescribeTopicPartitionsRequest(), embedded.call(0))
    assert isinstance(work, GeneratorType)
    next(work)
    embedded.delete("b")
    response = finished(work)
    assert [(it.name, it.error_code) for it in response.topics] == [("a", 0), ("b", 0), ("c", 0)]


@pytest.mark.parametrize("limit", [-1, 0, 1, 2, 3, 4, 5, 6, 7])
def test_the_pages_of_any_size_make_the_whole(embedded: Embedded, limit: int) -> None:
    """Following the cursor shows every partition once; a page is never empty."""
    seen: list[tuple[str | None, int]] = []
    cursor: tuple[str, int] | None = None
    for _ in range(10):
        response = ask(embedded, limit=limit, cursor=cursor)
        numbers = [(name, each) for name, each_page in page(response) for each in each_page]
        assert 0 < len(numbers) <= max(1, limit)
        seen += numbers
        if response.next_cursor is None:
            break
        cursor = (response.next_cursor.topic_name, response.next_cursor.partition_index)
    assert seen == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("c", 0), ("c", 1)]


def test_the_brokers_own_limit_holds(tmp_path: Path) -> None:
    """max.request.partition.size.limit bounds a page whatever the client asks for."""
    embedded = Embedded(tmp_path, {"max.request.partition.size.limit": "2"})
    embedded.create(NewTopic(name="a", num_partitions=3))
    response = ask(embedded)
    assert page(response) == [("a", [0, 1])]
    assert response.next_cursor == Cursor(topic_name="a", partition_index=2)


def test_topics_asked_for_that_do_not_exist(embedded: Embedded) -> None:
    """Each has its error; they count nothing towards the limit."""
    response = ask(embedded, "c", "aa", "not valid", limit=2)
    assert [(t.name, t.error_code) for t in response.topics] == [
        ("aa", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("c", ErrorCode.NONE),
        ("not valid", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ][:2]
    assert response.next_cursor == Cursor(topic_name="not valid", partition_index=0)


@pytest.mark.parametrize(
    ("names", "cursor"), [(["a", "b"], ("c", 0)), (["a"], ("a", -1)), ([], ("a", -1))]
)
def test_a_cursor_that_points_nowhere_is_refused(
    embedded: Embedded, names: list[str], cursor: tuple[str, int]
) -> None:
    """It must be one of the topics asked for, and no negative partition."""
    response = ask(embedded, *names, cursor=cursor)
    assert {topic.error_code for topic in response.topics} == {ErrorCode.INVALID_REQUEST}


def test_a_cursor_behind_the_last_partition_goes_on_with_the_next_topic(
    embedded: Embedded,
) -> None:
    """The topic may have been made anew with fewer partitions meanwhile."""
    assert page(ask(embedded, cursor=("a", 7))) == [("a", []), ("b", [0]), ("c", [0, 1])]
    assert page(ask(embedded, cursor=("aa", 1))) == [("b", [0]), ("c", [0, 1])]


def test_hidden_topics_are_not_listed(embedded: Embedded) -> None:
    """Among all topics they are left out; asked for by name they are refused without an id."""
    denying = Denying((AclOperation.DESCRIBE, ResourceType.TOPIC, "b"))
    assert [name for name, _ in page(ask(embedded, authorizer=denying))] == ["a", "c"]
    refused = ask(embedded, "a", "b", authorizer=denying).topics[-1]
    assert (refused.name, refused.error_code) == ("b", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert refused.topic_id.int == 0


def test_a_hidden_topic_is_not_called_internal(embedded: Embedded) -> None:
    """As in Kafka, whatever its name says."""
    name = "__consumer_offsets"
    denying = Denying((AclOperation.DESCRIBE, ResourceType.TOPIC, name))
    assert not ask(embedded, name, authorizer=denying).topics[0].is_internal
    assert ask(embedded, name).topics[0].is_internal
