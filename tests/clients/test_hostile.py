"""Attacks on a broker process: it stays within its memory, and another client is served."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.headers import RequestHeader, encode_request_header
from barnabas_kafka.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas_kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas_kafka.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.protocol.schema import Message
from benchmarks.attacks import ATTACKS, GIANT
from benchmarks.hostile import TOPIC, VICTIM, Canary, under_attack
from benchmarks.metering import memory_mib
from tests.clients.brokers import Broker, broker_under_test
from tests.clients.wire import Wire
from tests.waiting import ANSWER, seconds, wait_for

RSS_MIB_MAX = 450
"""Requests 100 and one of 100 beyond, responses 64, a batch of 64 being looked at, the rest."""

JOINS, JOIN_BYTES = 60, 4_000_000
"""Members that each tell as much about themselves as one request may."""
JOINED_MIB_MAX, LEFT_MIB_MAX = 230, 60
"""What they add to a broker's memory at most: what groups may take, and a request or two; and what
of it is left when they have gone."""

ROUND_TRIPS = 200
"""How often another client is served during each attack."""
LOG_LINES_MAX, LOG_LINES_A_SECOND_MAX = 25, 10
"""How much a flood may add to the log: its start and end, and a line a second and cause, however
long it takes on a busy machine."""


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker with as little memory for requests as it can have."""
    settings = {"broker.id": "0", "queued.max.request.bytes": str(GIANT)}
    with broker_under_test(tmp_path_factory.mktemp("attacked"), settings) as started:
        admin = AdminClient({"bootstrap.servers": started.bootstrap})
        for made in admin.create_topics([NewTopic(TOPIC, 1, 1), NewTopic(VICTIM, 1, 1)]).values():
            made.result(seconds(ANSWER))
        yield started


def port_of(broker: Broker) -> int:
    """Where it listens."""
    return int(broker.bootstrap.rpartition(":")[2])


def sockets(broker: Broker) -> int:
    """How many its process has."""
    links = Path(f"/proc/{broker.pid}/fd").iterdir()
    return sum(target_of(link).startswith("socket:") for link in links)


def target_of(link: Path) -> str:
    """What a descriptor is of; nothing if it is closed meanwhile."""
    try:
        return str(link.readlink())
    except FileNotFoundError:
        return ""


@pytest.fixture(scope="module")
def quiet(attacked: Broker) -> int:
    """The broker's sockets before any attack."""
    return sockets(attacked)


@pytest.mark.parametrize("name", ATTACKS)
def test_others_are_served_during_an_attack(attacked: Broker, quiet: int, name: str) -> None:
    """Each answer comes, the broker lives within its memory, and the log stays readable."""
    lines = len(attacked.tail(100_000).splitlines())
    begin = time.monotonic()
    canary = Canary(port_of(attacked), within_s=seconds(ANSWER))
    canary.sing()
    before = wait_for(
        "the broker's sockets, to be what they were before all attacks and one more",
        lambda: sockets(attacked),
        until=lambda found: found <= quiet + 1,
    )
    with under_attack(name, port_of(attacked)):
        wait_for(
            "the broker's sockets, to be more than without attackers",
            lambda: sockets(attacked),
            until=lambda found: found > before,
        )
        for _ in range(ROUND_TRIPS):
            canary.sing()
            assert memory_mib(attacked.pid)[1] < RSS_MIB_MAX
    canary.sing()
    canary.close()
    most = LOG_LINES_MAX + LOG_LINES_A_SECOND_MAX * (time.monotonic() - begin)
    assert len(attacked.tail(100_000).splitlines()) - lines < most


def test_giants_that_stop_arriving_are_dropped_when_others_need_the_memory(
    attacked: Broker,
) -> None:
    """Who fills the memory and goes silent is disconnected; a newcomer's large request gets in."""
    address = ("127.0.0.1", port_of(attacked))
    giants = [socket.create_connection(address) for _ in range(8)]
    for giant in giants:
        giant.setblocking(False)
        sent = giant.send(struct.pack(">i", GIANT))
        filled = False
        while sent < 40 << 20 and not filled:
            try:
                sent += giant.send(bytes(1 << 20))
            except BlockingIOError:
                filled = not select.select([], [giant], [], 1.0)[1]
    dropped, _, _ = select.select(giants, [], [], seconds(ANSWER))
    assert dropped
    canary = Canary(port_of(attacked), within_s=seconds(ANSWER))
    canary.sing()
    canary.close()
    for giant in giants:
        giant.close()


def framed(api_key: ApiKey, version: int, body: Message) -> bytes:
    """A request as it is sent; its answer is not looked at."""
    header = RequestHeader(api_key, version, 1, "greedy")
    payload = encode_request_header(header, 1) + codec.encode(body, version)
    return struct.pack(">i", len(payload)) + payload


def test_member_metadata_is_bounded_over_all_groups(attacked: Broker) -> None:
    """However many groups they name; and the memory comes back when their sessions are over."""
    address = ("127.0.0.1", port_of(attacked))
    before = memory_mib(attacked.pid)[0]
    vast = [JoinGroupRequestProtocol(name="range", metadata=bytes(JOIN_BYTES))]
    with socket.create_connection(address, timeout=seconds(ANSWER)) as asking:
        asking.sendall(framed(ApiKey.FIND_COORDINATOR, 0, FindCoordinatorRequest(key="greedy")))
        assert asking.recv(4)
    joining = []
    for number in range(JOINS):
        request = JoinGroupRequest(
            group_id=f"greedy-{number}",
            session_timeout_ms=6000,
            rebalance_timeout_ms=6000,
            protocol_type="consumer",
            protocols=vast,
        )
        joining.append(socket.create_connection(address, timeout=seconds(ANSWER)))
        joining[-1].sendall(framed(ApiKey.JOIN_GROUP, 3, request))
    for each in joining:
        assert each.recv(4)
        assert memory_mib(attacked.pid)[0] - before < JOINED_MIB_MAX
        each.close()
    wait_for(
        "the memory of the broker, to be given back",
        lambda: memory_mib(attacked.pid)[0] - before,
        until=lambda more: more < LEFT_MIB_MAX,
    )


def test_a_hundred_million_partitions_are_not_planned(attacked: Broker) -> None:
    """Not even to say whether they could be created: the controller would be busy for an hour."""
    topics = [
        CreatableTopic(name=f"planned-{number}", num_partitions=10_000, replication_factor=1)
        for number in range(10_000)
    ]
    request = CreateTopicsRequest(topics=topics, validate_only=True, timeout_ms=10_000)
    with Wire(attacked.bootstrap) as wire:
        answer = wire.ask(request, CreateTopicsResponse, 7)
    assert {each.error_code for each in answer.topics} == {ErrorCode.POLICY_VIOLATION}
