"""Quotas as clients meet them: throttle times, muted connections, empty fetches."""

import asyncio
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.cluster.quota_entity import DEFAULT, QuotaEntity
from barnabas_broker.log.validator import TooMuchAtOnce, validate_produce
from barnabas_broker.replica.partition import Partition
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.process import cooperative_scheduler
from barnabas_broker.server.process.cooperative_scheduler import CooperativeScheduler
from barnabas_broker.server.requests import client_quotas, dispatch
from barnabas_broker.server.requests.client_quotas import ClientQuotas
from barnabas_broker.server.requests.fast import produce as fast_produce
from barnabas_broker.server.requests.handlers import metadata, produce
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest
from barnabas_kafka.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas_kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas_kafka.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas_kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas_kafka.protocol.messages.list_groups import ListGroupsRequest
from barnabas_kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas_kafka.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WriteTxnMarkersRequest,
)
from barnabas_kafka.protocol.schema import Message
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from tests.broker.server.network.test_listener_security import two_brokers
from tests.broker.server.network.test_sasl_authenticator import tls_client, tls_connect
from tests.broker.server.running import (
    Wire,
    loop_of,
    pass_time,
    port_of,
    produce_request,
    running_node,
)
from tests.oracle.certificates import Certificate
from tests.waiting import ANSWER, RUN, seconds, wait_for

BATCH = build_batch([(int(time.time() * 1000), None, b"x" * 20_000, ())])
CLIENT = {"client-id": "wire"}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[BrokerServer]:
    """A broker of its own for each test, without any quota."""
    with running_node(tmp_path) as running:
        yield running


def set_quota(wire: Wire, entity: Mapping[str, str | None], **quotas: float | None) -> None:
    """Set quotas; None removes one."""
    response = wire.ask(
        AlterClientQuotasRequest(
            entries=[
                AlterClientQuotasRequestEntryData(
                    entity=[EntityData(entity_type=k, entity_name=n) for k, n in entity.items()],
                    ops=[
                        OpData(key=key, value=value or 0.0, remove=value is None)
                        for key, value in quotas.items()
                    ],
                )
            ]
        ),
        1,
    )
    assert [each.error_code for each in response.entries] == [0], response


def fetch_request(
    topic: str, *, max_wait_ms: int = 0, epoch: int = -1, **more: Any
) -> FetchRequest:
    """A fetch of partition 0 from the beginning."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        session_epoch=epoch,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
        **more,
    )


def is_muted(wire: Wire) -> bool:
    """Whether a request is not answered; another connection shows that the broker had time to."""
    wire.send(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 3)
    with Wire(wire.socket.getpeername()[1]) as other:
        other.ask(MetadataRequest(topics=[]), 9)
    wire.socket.setblocking(False)
    try:
        return not wire.socket.recv(1)
    except BlockingIOError:
        return True
    finally:
        wire.socket.settimeout(seconds(ANSWER))


def test_a_producer_beyond_its_quota(node: BrokerServer, wire: Wire) -> None:
    """It is answered at once, told for how long it is throttled, and not served before."""
    wire.create_topic("t")
    set_quota(wire, CLIENT, producer_byte_rate=1000)
    response = wire.ask(produce_request("t", BATCH), 9)
    assert response.responses[0].partition_responses[0].error_code == 0
    size = len(wire.frame(produce_request("t", BATCH), 9)) - 4
    # Ten windows of a second count, the one that has begun not.
    assert response.throttle_time_ms == round((size / 10 - 1000) / 1000 * 10_000)
    assert is_muted(wire)
    pass_time(node, response.throttle_time_ms / 1000 + 1)
    wire.receive_frame()


@pytest.mark.parametrize("version", [3, 8, 12])
def test_general_and_short_ways_throttle_alike(
    node: BrokerServer, wire: Wire, version: int
) -> None:
    """Two partitions, one of which there is none of, go the general way."""
    wire.create_topic("t")
    set_quota(wire, CLIENT, producer_byte_rate=1000)
    request = produce_request("t", BATCH)
    request.topic_data[0].partition_data.append(
        type(request.topic_data[0].partition_data[0])(index=7, records=BATCH)
    )
    size = len(wire.frame(request, version)) - 4
    response = wire.ask(request, version)
    assert response.throttle_time_ms == round((size / 10 - 1000) / 1000 * 10_000)
    assert is_muted(wire)


def test_a_producer_that_wants_no_answer(node: BrokerServer, wire: Wire) -> None:
    """Its connection is muted all the same."""
    wire.create_topic("t")
    set_quota(wire, CLIENT, producer_byte_rate=1000)
    wire.send(produce_request("t", BATCH, acks=0), 9)
    assert is_muted(wire)
    pass_time(node, 60)
    wire.receive_frame()


def counted(node: BrokerServer) -> float:
    """Bytes a second that count as produced."""
    quotas = node.broker.quotas
    return sum(it.measured(quotas.now_ms()) for _, it in quotas.produce.in_use(10))


def test_a_failed_produce_without_acks_closes_the_connection(
    node: BrokerServer, wire: Wire
) -> None:
    """Its connection ends, and what was appended of the request counts."""
    wire.create_topic("t")
    set_quota(wire, CLIENT, producer_byte_rate=1000)
    request = produce_request("t", BATCH, acks=0)
    data = request.topic_data[0].partition_data
    data.append(type(data[0])(index=7, records=b""))
    with Wire(port_of(node)) as other:
        other.send(request, 9)
        assert other.closed_by_broker()
    assert counted(node) > 1000


def test_a_producer_that_leaves_before_its_answer(
    node: BrokerServer, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has sent counts, though nobody is told for how long to wait."""
    wire.create_topic("t")
    set_quota(wire, CLIENT, producer_byte_rate=1000)
    # Nothing is committed, as where a follower lags.
    monkeypatch.setattr(Partition, "counts_at_once", lambda *_: False)
    monkeypatch.setattr(Partition, "_advance_alone", lambda _: None)
    with Wire(port_of(node)) as other:
        other.send(produce_request("t", BATCH), 9)
    wait_for("what it has sent counts", lambda: counted(node), until=lambda it: it > 1000)


@pytest.mark.parametrize("api", ["produce", "fetch"])
def test_the_time_of_a_client_that_leaves_counts(
    node: BrokerServer, wire: Wire, monkeypatch: pytest.MonkeyPatch, api: str
) -> None:
    """Or who never waits for an answer would have no limit."""
    wire.create_topic("t")
    set_quota(wire, CLIENT, request_percentage=1)
    quotas = node.broker.quotas

    def percent() -> float:
        return sum(it.measured(quotas.now_ms()) for _, it in quotas.request.in_use(10))

    monkeypatch.setattr(Partition, "counts_at_once", lambda *_: False)
    monkeypatch.setattr(Partition, "_advance_alone", lambda _: None)
    before = percent()
    with Wire(port_of(node)) as other:
        if api == "produce":
            other.send(produce_request("t", BATCH), 9)
        else:
            partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100)
            other.send(
                FetchRequest(
                    max_wait_ms=600_000,
                    min_bytes=1,
                    max_bytes=100,
                    session_epoch=-1,
                    topics=[FetchTopic(topic="t", partitions=[partition])],
                ),
                12,
            )
        session = wait_for(
            "a request that waits",
            lambda: [
                it
                for listener in node.listeners
                for it in list(listener.sessions)
                if it._waiting_for is not None
            ],
            until=bool,
        )
        assert len(session) == 1
        assert percent() == before
    pass_time(node, 1)  # It is noticed once a second that a client has left.
    wait_for("its time counts", percent, until=lambda it: it > before)


def test_names_that_no_server_answers_for_take_no_thread_from_others(
    node: BrokerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the name server is down: what others have done in threads goes on meanwhile."""
    looked_up: set[object] = set()
    given_up = threading.Event()

    found = socket.getaddrinfo

    def hang(host: Any, *given: Any, **named: Any) -> Any:
        if host not in names:
            return found(host, *given, **named)
        looked_up.add(host)
        given_up.wait(seconds(RUN))
        raise OSError("no answer")

    # As many as the executor of the event loop has threads, and one more.
    names = [f"absent{number}.example" for number in range((os.cpu_count() or 1) + 5)]
    monkeypatch.setattr(socket, "getaddrinfo", hang)
    with ExitStack() as stack:
        stack.callback(given_up.set)
        for name in names:
            stack.enter_context(Wire(port_of(node))).send(rate_of_address(name), 1)
        wait_for("all look-ups", lambda: len(looked_up), until=lambda it: it == len(names))
        work = asyncio.run_coroutine_threadsafe(asyncio.to_thread(int, "1"), loop_of(node))
        assert work.result(seconds(ANSWER)) == 1


def rate_of_address(name: str) -> AlterClientQuotasRequest:
    """One that sets how many connections an address may open in a second."""
    return AlterClientQuotasRequest(
        entries=[
            AlterClientQuotasRequestEntryData(
                entity=[EntityData(entity_type="ip", entity_name=name)],
                ops=[OpData(key="connection_creation_rate", value=5.0)],
            )
        ]
    )


def test_requests_in_one_packet(node: BrokerServer, wire: Wire) -> None:
    """What comes behind a request that exceeded the quota is served when that has passed."""
    wire.create_topic("t")
    set_quota(wire, CLIENT, producer_byte_rate=100)
    small = build_batch([(int(time.time() * 1000), None, b"x" * 1500, ())])
    frames = [wire.frame(produce_request("t", small), 9) for _ in range(4)]
    wire.socket.sendall(b"".join(frames))
    wire.receive_frame()
    assert is_muted(wire)
    for _ in range(3):
        pass_time(node, 3600)
        wire.receive_frame()


def test_quotas_count_together_what_they_name_together(node: BrokerServer, wire: Wire) -> None:
    """Two connections of a user share its quota; another client id has its own."""
    wire.create_topic("t")
    set_quota(wire, {"user": "ANONYMOUS"}, producer_byte_rate=3000)
    with Wire(port_of(node)) as second:
        assert wire.ask(produce_request("t", BATCH), 9).throttle_time_ms == 0
        assert second.ask(produce_request("t", BATCH), 9).throttle_time_ms > 0


@pytest.mark.parametrize("max_wait_ms", [0, 500])
@pytest.mark.parametrize("version", [4, 11, 12])
def test_a_consumer_beyond_its_quota(
    node: BrokerServer, wire: Wire, version: int, max_wait_ms: int
) -> None:
    """It gets no records, which are not counted: the next fetch has them."""
    wire.create_topic("t")
    wire.produce("t", BATCH)
    set_quota(wire, CLIENT, consumer_byte_rate=1000)
    response = wire.ask(fetch_request("t", max_wait_ms=max_wait_ms), version)
    assert response.throttle_time_ms > 0
    assert response.responses == []
    assert is_muted(wire)
    pass_time(node, response.throttle_time_ms / 1000 + 1)
    wire.receive_frame()
    set_quota(wire, CLIENT, consumer_byte_rate=4000)
    response = wire.ask(fetch_request("t", max_wait_ms=max_wait_ms), version)
    assert response.throttle_time_ms == 0
    assert bytes(response.responses[0].partitions[0].records) != b""


def test_a_throttled_fetch_opens_no_session(node: BrokerServer, wire: Wire) -> None:
    """The client begins again with a full one."""
    wire.create_topic("t")
    wire.produce("t", BATCH)
    set_quota(wire, CLIENT, consumer_byte_rate=1000)
    response = wire.ask(fetch_request("t", epoch=0), 12)
    assert (response.throttle_time_ms > 0, response.session_id) == (True, 0)
    assert not node.broker.fetch_sessions.sessions


def test_fetches_are_as_large_as_may_be_fetched_at_once(node: BrokerServer, wire: Wire) -> None:
    """Or each would be throttled and none make progress."""
    wire.create_topic("t")
    for _ in range(3):
        wire.produce("t", BATCH)
    set_quota(wire, CLIENT, consumer_byte_rate=3900)
    response = wire.ask(fetch_request("t"), 12)
    assert response.throttle_time_ms == 0
    assert len(bytes(response.responses[0].partitions[0].records)) < 2 * len(BATCH)


def test_time_is_rationed(node: BrokerServer, wire: Wire) -> None:
    """Every request counts, whichever way it is served; the longest throttle time is a window."""
    set_quota(wire, CLIENT, request_percentage=0.000001)
    wire.create_topic("t")
    for request, version in (
        (MetadataRequest(topics=[]), 9),
        (ListGroupsRequest(), 4),
        (ApiVersionsRequest(client_software_name="t", client_software_version="1"), 3),
        (produce_request("t", BATCH), 9),
        (fetch_request("t"), 12),
    ):
        pass_time(node, 2)
        assert wire.ask(request, version).throttle_time_ms == 1000
    assert is_muted(wire)


@pytest.mark.parametrize("served", ["in turns", "as a large request", "in a thread"])
def test_time_beyond_the_first_turn_counts(
    node: BrokerServer, wire: Wire, monkeypatch: pytest.MonkeyPatch, served: str
) -> None:
    """Of requests that are worked on while others are served: all of it, and no other time."""
    names = [f"t{number}" for number in range(20)]
    wire.create_topic("t")
    set_quota(wire, CLIENT, request_percentage=1)
    clock, spent = [1], []
    requested = ClientQuotas.requested

    def spy(self: ClientQuotas, user: str, client_id: str | None, spent_ns: int) -> int:
        spent.append(spent_ns)
        return requested(self, user, client_id, spent_ns)

    def look(*args: Any, **more: Any) -> Any:
        clock[0] += 1000
        return True

    def validate(*args: Any, at_once: int = 0, **more: Any) -> Any:
        if at_once:
            raise TooMuchAtOnce
        clock[0] += 1000
        return validate_produce(*args, **more)

    def turn(self: CooperativeScheduler, *args: Any) -> None:
        clock[0] += 50_000  # What others do meanwhile.
        go_on(self, *args)

    go_on = CooperativeScheduler._resume
    monkeypatch.setattr(ClientQuotas, "requested", spy)
    monkeypatch.setattr(CooperativeScheduler, "_resume", turn)
    for module in (client_quotas, dispatch):
        monkeypatch.setattr(module, "perf_counter_ns", lambda: clock[0])
    monkeypatch.setattr(cooperative_scheduler, "TIME_SLICE_S", 0.0)
    if served == "in a thread":
        monkeypatch.setattr(fast_produce, "PACKED_BYTES_MAX", 0)
        monkeypatch.setattr(produce, "validate_produce", validate)
        batch = build_batch([(1000, b"k", b"v" * 100, ())], codec=Codec.LZ4)
        answer = wire.ask(produce_request("t", batch), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
        assert spent == [1000]
        return
    if served == "as a large request":
        monkeypatch.setattr(dispatch, "ELEMENTS_AT_ONCE", 5)
    monkeypatch.setattr(metadata, "_may_describe", look)
    asked = [MetadataRequestTopic(name=name) for name in names]
    answer = wire.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False), 9)
    assert len(answer.topics) == len(names)
    assert spent == [1000 * len(names)]


def test_a_client_posing_as_a_broker_is_throttled(tmp_path: Path) -> None:
    """Brokers' requests are not counted; those of a client that may not send them are."""
    settings = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:nobody",
    }
    marker = WritableTxnMarker(producer_id=1, producer_epoch=0, transaction_result=True)
    requests: list[tuple[Message, int]] = [
        (WriteTxnMarkersRequest(markers=[marker]), 1),
        (fetch_request("t", replica_id=7), 12),
    ]
    for request, version in requests:
        with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
            node.broker.quotas.take({QuotaEntity(DEFAULT): {"request_percentage": 1e-9}})
            wire.send(request, version)
            wire.receive_frame()
            assert is_muted(wire)


def test_brokers_requests_are_not_counted(node: BrokerServer, wire: Wire) -> None:
    """Whoever may send them is exempt."""
    node.broker.quotas.take({QuotaEntity(DEFAULT): {"request_percentage": 1e-9}})
    marker = WritableTxnMarker(producer_id=1, producer_epoch=0, transaction_result=True)
    wire.ask(WriteTxnMarkersRequest(markers=[marker]), 1)
    assert not is_muted(wire)


def test_quotas_that_are_removed(node: BrokerServer, wire: Wire) -> None:
    """Nothing is counted any more."""
    wire.create_topic("t")
    set_quota(wire, CLIENT, producer_byte_rate=1000)
    set_quota(wire, CLIENT, producer_byte_rate=None)
    assert not node.broker.quotas.active
    for _ in range(3):
        assert wire.ask(produce_request("t", BATCH), 9).throttle_time_ms == 0


def create(name: str, partitions: int = 1) -> CreateTopicsRequest:
    """A topic to create."""
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(timeout_ms=5000, topics=[topic])


def test_changes_of_topics_are_rationed(node: BrokerServer, wire: Wire) -> None:
    """The first that overdraws is done; what follows is refused, and nothing of it is done."""
    set_quota(wire, {"user": None}, controller_mutation_rate=0.1)
    first = wire.ask(create("a", 5), 7)
    assert first.topics[0].error_code == 0
    assert first.throttle_time_ms == 0
    with Wire(port_of(node)) as other:
        refused = other.ask(create("b"), 7)
    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert refused.topics[0].error_code == code
    assert refused.topics[0].error_message == "The throttling quota has been exceeded."
    assert 38_000 < refused.throttle_time_ms <= 39_000
    with Wire(port_of(node)) as other:
        grown = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="a", count=6, assignments=None)], timeout_ms=5000
        )
        assert other.ask(grown, 3).results[0].error_code == code
    with Wire(port_of(node)) as other:
        deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name="a")], timeout_ms=5000)
        answer = other.ask(deletion, 6)
        assert (answer.responses[0].error_code, answer.throttle_time_ms > 0) == (code, True)
        assert is_muted(other)
    assert list(node.broker.image.topics) == ["a"]
    assert len(node.broker.image.topics["a"].partitions) == 5


def test_old_clients_change_topics_and_wait(node: BrokerServer, wire: Wire) -> None:
    """They do not know the error; validation alone is free."""
    set_quota(wire, {"user": None}, controller_mutation_rate=0.1)
    validated = create("a", 50)
    validated.validate_only = True
    assert wire.ask(validated, 7).throttle_time_ms == 0
    response = wire.ask(create("a", 5), 5)
    assert response.topics[0].error_code == 0
    assert 38_000 < response.throttle_time_ms <= 39_000
    assert is_muted(wire)


def test_topics_that_another_broker_has_created_count(tmp_path: Path) -> None:
    """A client that names topics of its own is throttled, whichever broker it asks for them."""
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "controlled.shutdown.enable": "false",
        "num.partitions": "5",
        "default.replication.factor": "1",
    }
    with two_brokers(tmp_path, settings) as nodes:
        wait_for(
            "a controller", lambda: {it.broker.image.controller_id for it in nodes} in ({0}, {1})
        )
        (member,) = (it for it in nodes if it.broker.id != it.broker.image.controller_id)
        with Wire(port_of(nodes[0])) as admin:
            set_quota(admin, CLIENT, controller_mutation_rate=0.1)
        wait_for("the quota", lambda: member.broker.quotas.active)
        with Wire(port_of(member)) as wire:
            answer = wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="a")]), 9)
            assert 38_000 < answer.throttle_time_ms <= 39_000
            assert is_muted(wire)


def test_a_client_whose_user_has_an_empty_name(tmp_path: Path) -> None:
    """One whose certificate has no subject, or none that a rule leaves, has any user's quota."""
    authority = Certificate("authority")
    authority.write_trust(tmp_path / "trust.pem")
    Certificate("broker", authority, host="localhost").write_pem(tmp_path / "broker.pem")
    Certificate("alice", authority).write_pem(tmp_path / "alice.pem")
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,TLS://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TLS:SSL",
        "ssl.keystore.location": str(tmp_path / "broker.pem"),
        "ssl.truststore.location": str(tmp_path / "trust.pem"),
        "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:.*//",
    }
    with running_node(tmp_path / "data", settings) as node, Wire(port_of(node)) as admin:
        admin.create_topic("t")
        set_quota(admin, {"user": None}, producer_byte_rate=1000)
        with tls_connect(node, tls_client(tmp_path, key="alice.pem")) as wire:
            assert wire.ask(produce_request("t", BATCH), 9).throttle_time_ms > 0


def test_a_muted_client_that_leaves(node: BrokerServer, wire: Wire) -> None:
    """Its connection ends, though nothing is read from it."""
    wire.create_topic("t")
    set_quota(wire, CLIENT, producer_byte_rate=1)
    assert wire.ask(produce_request("t", BATCH), 9).throttle_time_ms > 0
    sessions = node.listeners[0].sessions
    assert sessions
    wire.socket.close()
    pass_time(node, 2)
    wait_for("the end of the connection", lambda: len(sessions), until=lambda count: not count)
