"""The client against brokers that misbehave: away, silent, moved, no longer the controller."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Awaitable
from typing import Any, TypeVar

import pytest

from barnabas_kafka.client import (
    AclFilter,
    AsyncAdmin,
    BrokerError,
    ClientClosedError,
    ClientConfig,
    DeadlineExceededError,
    MalformedResponseError,
    NewTopic,
    UnsupportedVersionError,
    create_topics,
    delete_groups,
    describe_acls,
    describe_cluster,
    describe_topics,
    elect_leaders,
    list_offsets,
)
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest
from barnabas_kafka.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from barnabas_kafka.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from barnabas_kafka.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from barnabas_kafka.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas_kafka.protocol.messages.metadata import MetadataRequest
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.protocol.schema import Request, Response
from tests.kafka.client.fake_cluster import FakeBroker, FakeCluster, created
from tests.waiting import ANSWER, seconds, wait_for_async

T = TypeVar("T")


def config(cluster: FakeCluster, **changes: object) -> ClientConfig:
    """Deadlines of a test, and quick probes."""
    settings: dict[str, object] = {
        "bootstrap_servers": cluster.bootstrap,
        "timeout_s": seconds(ANSWER),
        "request_timeout_s": seconds(ANSWER),
        "connect_timeout_s": 0.2,
        "probe_after_s": 0.05,
    }
    return ClientConfig(**(settings | changes))  # type: ignore[arg-type]


def run(test: Awaitable[T]) -> T:
    """Run a test on an event loop of its own."""

    async def whole() -> T:
        return await test

    return asyncio.run(whole())


def test_describes_the_cluster() -> None:
    """Id, controller, brokers and racks, of a client that was given one address."""

    async def test() -> None:
        async with FakeCluster(3) as cluster, AsyncAdmin(config(cluster)) as admin:
            view = await admin.call(describe_cluster())
            assert (view.cluster_id, view.controller_id) == ("fake", 0)
            assert {(each.id, each.rack) for each in view.brokers.values()} == {
                (0, "r"), (1, "r"), (2, "r"),
            }  # fmt: skip

    run(test())


def test_hosts_whose_lookups_hang_delay_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of the pods of one cluster that was deleted: clients of others share the process."""
    answered, lookup = threading.Event(), socket.getaddrinfo

    def hang(host: str, *given: Any, **named: Any) -> Any:
        if host == "here.test":
            return lookup("127.0.0.1", *given, **named)
        answered.wait()
        raise socket.gaierror(socket.EAI_AGAIN, "no answer")

    async def describe(cluster: FakeCluster, bootstrap: str) -> str | None:
        given = config(cluster, bootstrap_servers=bootstrap, connect_timeout_s=seconds(ANSWER))
        async with AsyncAdmin(given) as admin:
            return (await admin.call(describe_cluster())).cluster_id

    async def test() -> None:
        async with FakeCluster() as cluster:
            hosts = [f"away{number}.test:9092" for number in range(64)]
            hosts.append(f"here.test:{cluster.brokers[0].port}")
            *away, here = (asyncio.ensure_future(describe(cluster, host)) for host in hosts)
            try:
                assert await here == "fake"
            finally:
                answered.set()
                for each in away:
                    each.cancel()
                await asyncio.gather(*away, return_exceptions=True)

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    run(test())


def test_results_are_by_topic() -> None:
    """A topic that does not exist does not fail the one that does."""

    async def test() -> None:
        async with FakeCluster() as cluster, AsyncAdmin(config(cluster)) as admin:
            cluster.topics["there"] = 3
            results = await admin.call(describe_topics(["there", "missing"]))
            assert len(results.one("there").partitions) == 3
            assert results.errors["missing"].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION"):
                results.all()

    run(test())


def test_finds_the_controller_again() -> None:
    """The broker that was the controller says so no more; the call goes to the next one."""

    async def test() -> None:
        async with FakeCluster(3, answer=created) as cluster:
            async with AsyncAdmin(config(cluster)) as admin:
                (await admin.call(create_topics([NewTopic("first")]))).all()
                cluster.controller = 2
                (await admin.call(create_topics([NewTopic("second")]))).all()
            assert cluster.brokers[2].asked.count("CreateTopics") == 1

    run(test())


def test_a_controller_that_is_silent_is_not_waited_for() -> None:
    """Its node is gone: the connection stays open, and nothing is answered.

    The next call must succeed within its deadline, which is far below the time-out of TCP, and
    below the time-out of a request here.
    """

    async def test() -> None:
        async with FakeCluster(3, answer=created) as cluster, AsyncAdmin(config(cluster)) as admin:
            (await admin.call(create_topics([NewTopic("first")]))).all()
            cluster.brokers[0].silent = True
            cluster.controller = 1
            (await admin.call(create_topics([NewTopic("second")]))).all()
            assert cluster.brokers[1].asked.count("CreateTopics") == 1

    run(test())


def test_a_controller_that_comes_back_elsewhere_is_found() -> None:
    """A pod that was replaced has another address, which the metadata of the others names."""

    async def test() -> None:
        async with FakeCluster(2, answer=created) as cluster, AsyncAdmin(config(cluster)) as admin:
            (await admin.call(create_topics([NewTopic("first")]))).all()
            await cluster.brokers[0].stop()
            await cluster.brokers[0].start()
            (await admin.call(create_topics([NewTopic("second")]))).all()
            assert cluster.brokers[0].asked.count("CreateTopics") == 2

    run(test())


def test_a_silent_bootstrap_server_delays_nothing() -> None:
    """The others are asked a moment later, whatever the first one does."""

    async def test() -> None:
        async with FakeCluster(3) as cluster, AsyncAdmin(config(cluster)) as admin:
            cluster.brokers[0].silent = cluster.brokers[1].silent = True
            view = await admin.call(describe_topics([]))
            assert view.values == {}
            assert (await admin.call(describe_cluster())).cluster_id == "fake"

    run(test())


def test_the_deadline_names_the_reason() -> None:
    """Nothing listens: the error says where, and why."""

    async def test() -> None:
        nowhere = ClientConfig(bootstrap_servers="127.0.0.1:1", timeout_s=0.3)
        async with AsyncAdmin(nowhere) as admin:
            results = admin.call(describe_cluster())
            with pytest.raises(DeadlineExceededError, match=r"cannot connect to 127\.0\.0\.1:1"):
                await results

    run(test())


@pytest.mark.parametrize(
    ("closes_at", "hint"),
    [(ApiVersionsRequest, "may require TLS"), (MetadataRequest, "may require SASL")],
)
def test_a_listener_of_another_security_protocol(closes_at: type[Request], hint: str) -> None:
    """It closes connections without a word, as a broker that stops does: the error names both."""

    def close(_broker: FakeBroker, request: Request, _version: int) -> None:
        if isinstance(request, closes_at):
            raise ConnectionError

    async def test() -> None:
        async with (
            FakeCluster(answer=close) as cluster,
            AsyncAdmin(config(cluster, timeout_s=0.3)) as admin,
        ):
            closed = f"the connection to {cluster.bootstrap} was closed.*; the listener {hint}"
            with pytest.raises(DeadlineExceededError, match=closed):
                await admin.call(describe_cluster())

    run(test())


def test_a_listener_without_tls() -> None:
    """It closes a connection that begins with the handshake of TLS."""

    async def test() -> None:
        async with await asyncio.start_server(_leave, "127.0.0.1", 0) as server:
            address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            tls = ClientConfig(
                bootstrap_servers=address, tls=ssl.create_default_context(), timeout_s=0.3
            )
            async with AsyncAdmin(tls) as admin:
                with pytest.raises(DeadlineExceededError, match="; the listener may not speak TLS"):
                    await admin.call(describe_cluster())

    run(test())


async def _leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.close()


def test_without_a_controller_the_call_says_so() -> None:
    """An election takes its time; the call waits for it until its deadline."""

    async def test() -> None:
        async with FakeCluster(1, answer=created) as cluster, AsyncAdmin(config(cluster)) as admin:
            cluster.controller = -1
            results = await admin.call(create_topics([NewTopic("t")]), timeout_s=0.3)
            assert isinstance(results.errors["t"], DeadlineExceededError)
            assert "no active controller" in str(results.errors["t"])

    run(test())


def test_an_old_broker_is_asked_for_its_versions_again() -> None:
    """It answers ApiVersions 3 with UNSUPPORTED_VERSION, in version 0."""

    async def test() -> None:
        async with FakeCluster() as cluster, AsyncAdmin(config(cluster)) as admin:
            cluster.newest[ApiKey.API_VERSIONS] = 2
            assert (await admin.call(describe_cluster())).cluster_id == "fake"

    run(test())


def test_a_request_that_the_broker_lacks_is_not_sent() -> None:
    """The error names the request, and the call does not wait for its deadline."""

    async def test() -> None:
        async with FakeCluster() as cluster, AsyncAdmin(config(cluster)) as admin:
            cluster.newest[ApiKey.CREATE_TOPICS] = -1
            results = await admin.call(create_topics([NewTopic("t")]))
            assert isinstance(results.errors["t"], UnsupportedVersionError)
            assert "CREATE_TOPICS" in str(results.errors["t"])

    run(test())


def test_calls_share_a_connection() -> None:
    """Many at once need no more connections than one."""

    async def test() -> None:
        async with FakeCluster() as cluster, AsyncAdmin(config(cluster)) as admin:
            cluster.topics["t"] = 1
            calls = (admin.call(describe_topics(["t"])) for _ in range(50))
            assert all(each.one("t") for each in await asyncio.gather(*calls))
            assert cluster.brokers[0].connections == 1

    run(test())


def test_a_closed_client_refuses() -> None:
    """And its connections are closed."""

    async def test() -> None:
        async with FakeCluster() as cluster:
            admin = AsyncAdmin(config(cluster))
            await admin.call(describe_cluster())
            await admin.close()
            with pytest.raises(ClientClosedError):
                await admin.call(describe_cluster())

    run(test())


def test_an_idle_connection_is_closed_and_made_again() -> None:
    """The next call does not notice."""

    async def test() -> None:
        async with FakeCluster() as cluster:
            async with AsyncAdmin(config(cluster, idle_s=0.0)) as admin:
                await admin.call(describe_cluster())
                await admin.call(describe_topics([]))
                assert (await admin.call(describe_cluster())).cluster_id == "fake"
            assert cluster.brokers[0].connections >= 2

    run(test())


@pytest.mark.parametrize("text", ["", "host:port", "host:70000", ":9092"])
def test_a_bad_address_is_refused_at_once(text: str) -> None:
    """Before any call; an empty list has no address at all, and says so at the first one."""
    if text:
        with pytest.raises(ValueError, match="host:port"):
            AsyncAdmin(ClientConfig(bootstrap_servers=text))
    else:
        assert ClientConfig(bootstrap_servers=text).addresses() == []


def test_an_answer_newer_than_the_client_fails_that_call() -> None:
    """A resource type that it does not know; the client goes on."""

    def newer(broker: FakeBroker, request: Request, version: int) -> Response | None:
        if not isinstance(request, DescribeAclsRequest):
            return None
        rule = AclDescription(principal="User:a", host="*", operation=99, permission_type=3)
        resource = DescribeAclsResource(resource_type=2, resource_name="t", acls=[rule])
        return DescribeAclsResponse(resources=[resource])

    async def test() -> None:
        async with FakeCluster(1, answer=newer) as cluster, AsyncAdmin(config(cluster)) as admin:
            with pytest.raises(MalformedResponseError, match="99"):
                await admin.call(describe_acls(AclFilter()))
            assert (await admin.call(describe_cluster())).cluster_id == "fake"

    run(test())


def test_the_coordinator_is_looked_up_and_looked_up_again() -> None:
    """In an old version with one key for each request; where it moves, it is found again."""
    coordinator = [1]

    def answer(broker: FakeBroker, request: Request, version: int) -> Response | None:
        if isinstance(request, FindCoordinatorRequest):
            return FindCoordinatorResponse(node_id=coordinator[0], host="127.0.0.1", port=1)
        if isinstance(request, DeleteGroupsRequest):
            here = broker.id == coordinator[0]
            code = ErrorCode.NONE if here else ErrorCode.NOT_COORDINATOR
            return DeleteGroupsResponse(
                results=[
                    DeletableGroupResult(group_id=each, error_code=code)
                    for each in request.groups_names
                ]
            )
        return None

    async def test() -> None:
        async with FakeCluster(3, answer=answer) as cluster, AsyncAdmin(config(cluster)) as admin:
            cluster.newest[ApiKey.FIND_COORDINATOR] = 3
            assert set((await admin.call(delete_groups(["a", "b"]))).all()) == {"a", "b"}
            coordinator[0] = 2
            assert set((await admin.call(delete_groups(["a", "b"]))).all()) == {"a", "b"}
            assert cluster.brokers[2].asked.count("DeleteGroups") == 1

    run(test())


def test_a_partition_without_a_leader_is_waited_for() -> None:
    """Until the deadline; that it has none is the reason in the error."""

    def leaderless(broker: FakeBroker, request: Request, version: int) -> Response | None:
        if not isinstance(request, MetadataRequest) or not request.topics:
            return None
        response = broker.cluster.metadata(request)
        for partition in response.topics[0].partitions:
            partition.leader_id, partition.error_code = -1, ErrorCode.LEADER_NOT_AVAILABLE
        return response

    async def test() -> None:
        async with FakeCluster(1, answer=leaderless) as cluster:
            async with AsyncAdmin(config(cluster)) as admin:
                cluster.topics["t"] = 1
                partition = TopicPartition("t", 0)
                results = await admin.call(list_offsets([partition]), timeout_s=0.3)
            assert "LEADER_NOT_AVAILABLE" in str(results.errors[partition])

    run(test())


def test_closing_fails_callers_waiting_for_metadata() -> None:
    """They get an error of the client, and are not cancelled: that would look like their own."""

    async def test() -> None:
        async with FakeCluster() as cluster:
            cluster.brokers[0].silent = True
            admin = AsyncAdmin(config(cluster, connect_timeout_s=seconds(ANSWER)))
            call = asyncio.create_task(admin.call(describe_cluster()))
            await wait_for_async("a request", lambda: bool(cluster.brokers[0].asked))
            await admin.close()
            with pytest.raises(ClientClosedError):
                await call

    run(test())


def test_an_answer_without_the_group_is_none() -> None:
    """The look-up ends, and the error names what is missing."""

    def other(broker: FakeBroker, request: Request, version: int) -> Response | None:
        if not isinstance(request, FindCoordinatorRequest):
            return None
        return FindCoordinatorResponse(coordinators=[Coordinator(key="other", node_id=0)])

    async def test() -> None:
        async with FakeCluster(1, answer=other) as cluster, AsyncAdmin(config(cluster)) as admin:
            results = await admin.call(delete_groups(["a"]), timeout_s=0.3)
            assert "COORDINATOR_NOT_AVAILABLE" in str(results.errors["a"])

    run(test())


def test_an_election_is_asked_of_the_next_controller() -> None:
    """The refusal stands beside each partition, not in the response's own error."""

    def elections(broker: FakeBroker, request: Request, version: int) -> Response | None:
        if not isinstance(request, ElectLeadersRequest):
            return None
        code = ErrorCode.NOT_CONTROLLER
        if broker.id == broker.cluster.controller:
            code = ErrorCode.ELECTION_NOT_NEEDED
        result = PartitionResult(partition_id=0, error_code=code)
        return ElectLeadersResponse(
            replica_election_results=[ReplicaElectionResult(topic="t", partition_result=[result])]
        )

    async def test() -> None:
        partition = TopicPartition("t", 0)
        both = FakeCluster(2, answer=elections)
        async with both as cluster, AsyncAdmin(config(cluster)) as admin:
            await admin.call(describe_cluster())
            cluster.controller = 1
            error = (await admin.call(elect_leaders([partition])))[partition]
        assert error is not None
        assert error.code is ErrorCode.ELECTION_NOT_NEEDED

    run(test())
