"""Every table that clients fill has its row in the page of bounds, and is as bounded as it says."""

import ast
import asyncio
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

import pytest

import barnabas_broker
from barnabas_broker.cluster.quota_entity import DEFAULT, QuotaEntity
from barnabas_broker.coordinator.group.consumer.expressions import Expressions
from barnabas_broker.coordinator.group.consumer.member_update import EXPRESSIONS_MAX
from barnabas_broker.coordinator.group.joining import Join
from barnabas_broker.coordinator.group.members import Client
from barnabas_broker.coordinator.transaction.shard import Initialisation
from barnabas_broker.coordinator.transaction.shard import Shard as Transactions
from barnabas_broker.log.producer_state import Origin, ProducerBatch, ProducerState
from barnabas_broker.quota.manager import SENSORS_MAX, QuotaManager
from barnabas_broker.quota.rates import RateSensor
from barnabas_broker.replica.fetch_session import SessionCache, SessionRequest
from barnabas_broker.security.acl_rules import Rules
from barnabas_broker.security.acls import AclOperation, ResourcePattern, ResourceType
from barnabas_broker.security.audit import SOURCES_MAX
from barnabas_broker.security.authorizer import DECISIONS_MAX, AclAuthorizer
from barnabas_broker.security.principals import ANONYMOUS, Principal
from barnabas_broker.server.control import delegation_token_manager
from barnabas_broker.server.control.delegation_token_manager import DelegationTokenManager
from barnabas_broker.server.network.connection_quotas import ConnectionQuotas
from barnabas_broker.server.network.listener import THROTTLED_MAX, Listener
from barnabas_broker.server.network.long_requests import CLIENTS_MAX, LongRequests
from barnabas_broker.server.process.fair_queue import FLOWS_MAX, FairQueue, flow_of
from barnabas_broker.server.process.offload_pool import OffloadPool
from barnabas_broker.server.requests.broker_services import BrokerServices
from barnabas_broker.server.transport.limits import ConnectionLimits
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.protocol.group_values import GroupJoin
from barnabas_kafka.settings.broker import BrokerSettings
from tests.broker.controller.ensemble import Ensemble
from tests.broker.coordinator.group.consumer.scenarios import ConsumerScenario
from tests.broker.coordinator.group.scenarios import Scenario
from tests.broker.coordinator.transaction.scenarios import Scenario as TransactionScenario
from tests.broker.server.members import join_request

SOURCE: Final = Path(barnabas_broker.__file__).parent
DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "contributing" / "bounds.md"
LOOKED_AT: Final = (
    "coordinator/**/*.py", "log/producer_state.py", "replica/**/*.py", "security/a*.py",
    "security/delegation_tokens.py", "server/**/*.py", "controller/**/*.py", "quota/*.py",
)  # fmt: skip
TABLES: Final = ("dict", "set", "OrderedDict", "Counter")

NOT_OF_CLIENTS: Final = {
    "RequestContext.denied": "what one request names",
    "Runtime._held": "partitions of an internal topic",
    "TransactionCoordinator._sweeps": "settings",
    "Ending._unacknowledged": "partitions of one transaction",
    "BackgroundTasks._probing": "log directories",
    "Group._supporters": "protocols of members, counted with them",
    "ProducerState._ongoing": "open transactions, which no bound may forget",
    "ProducerState._unreplicated": "ended transactions, until they are replicated",
    "Plan.entries": "of one request",
    "Session.targets": "bounded by the cache of sessions",
    "ConnectionQuotas.of_listener": "settings",
    "ListenerSecurity._decoys": "mechanisms in the code",
    "ConnectionQuotas._rates": "settings",
    "Background._down": "as Background.tasks",
    "Background.failures": "names of tasks in the code",
    "Background._postponed": "as Background.tasks",
    "Background.tasks": "tasks of those who begin them, each of which has its bound",
    "Background._short": "as Background.tasks",
    "BufferPool._free": "sizes in the code",
    "_Channel.unusable": "partitions that exist",
    "ControllerChannelManager._channels": "brokers that are registered",
    "ControllerThread._changed_paths": "znodes that are watched",
    "Counters.totals": "causes in the code",
    "Counters._said_at": "causes in the code",
    "Counters._unsaid": "causes in the code",
    "StoredPasswords._known": "settings that brokers have in ZooKeeper",
    "Route.header_versions": "versions in the code",
    "LogCleaner._running": "partitions that exist",
    "LogCleaner._processes": "settings",
    "LogMover._tasks": "partitions that exist",
    "LogMover._ends": "partitions that exist",
    "HttpThread._places": "64 places of the admin port",
    "HttpThread._urgent_places": "16 places of the admin port",
    "ApiMetrics.versions": "versions in the code",
    "ApiMetrics.errors": "error codes in the code",
    "RequestMetrics.by_api": "APIs in the code",
    "Peers._links": "brokers that are registered",
    "_Connection._versions": "APIs of another broker",
    "_Connection._pending": "our own requests",
    "AlterPartitionManager._waiting": "partitions that are led here",
    "Copied.logged_errors": "partitions that are followed",
    "ReplicaFetcher.copied": "partitions that are followed",
    "ReplicaFetcherManager.running": "brokers that are registered",
    "ReplicaFetcherManager._place": "partitions that are followed",
    "ReplicaFetcherManager._apart": "partitions that are followed",
    "ReplicaFetcherManager._stopping": "brokers that are registered",
    "IsrChanges._tasks": "partitions that are led here",
    "TransactionMarkerChannelManager._kept": "ending transactions of bounded ids",
    "TransactionMarkerChannelManager._tasks": "ending transactions of bounded ids",
    "BackgroundTasks._flushing": "partitions that exist",
    "BackgroundTasks._tasks": "names of tasks in the code",
    "Ends._by_broker": "brokers that are registered",
    "Follower._missing": "topics that exist",
    "Follower._watched": "topics that exist",
    "TakenNames._by_metric_name": "topics that exist",
    "ControllerContext.deleting": "topics that exist",
    "ControllerContext.unconfirmed": "topics that exist",
    "ControllerChannelManager._own_late": "topics that exist",
    "DirectoryThreads._of": "log directories",
    "Volumes._asked": "log directories",
    "ControllerContext.undeleted": "topics that exist",
    "ControllerContext.offline": "partitions that exist",
    "ControllerContext.asked": "brokers that are registered",
    "ControllerContext.ends": "partitions that exist",
    "ControllerContext.unsettled": "partitions that exist",
    "ReplicaFetcher._delayed": "partitions that are followed",
    "ReplicaFetcher._fetched": "partitions that are followed",
    "ReplicaFetcher._throttled": "partitions that are followed",
    "ReplicaFetcher._touched": "partitions that are followed",
    "FollowerSession.active": "partitions of a session, which the page has",
    "GroupCommit._waiting": "partitions that exist",
    "GroupCommits._of": "log directories",
    "InSync._followers": "brokers that are registered",
    "IsrNotices._written": "partitions that are led here",
    "LeaderSession.names": "topics that are followed",
    "LeaderSession._partitions_of": "topics that are followed",
    "LeaderSession.partitions": "partitions that are followed",
    "ReplicaManager._partitions": "partitions that exist",
    "ReplicaManager.traffic": "topics that exist",
    "ReplicaManager._out_of_reach": "partitions that the controller names",
    "PartitionIndex.leaderless": "partitions that exist",
    "PartitionIndex.moving": "partitions that exist",
    "ReplicaManager._after_cut": "partitions that exist",
    "ReplicaManager._failed": "topics that exist",
    "ReplicaManager._retries": "partitions that exist",
    "ReplicaManager._expected": "partitions that the controller names",
    "TopicRules._produce_rules": "topics that exist",
    "WantedPartitions._without_id": "partitions that are followed",
    "WantedPartitions.changed": "partitions that are followed",
    "WantedPartitions.partitions": "partitions that are followed",
    "_ProduceProgress.allowed": "topics of one request",
    "_Evening._kept": "of one decision",
    "_Evening.assigned": "of one decision",
}
"""Tables whose keys are not what clients send, or that are parts of one that the page has."""

JOINS: Final[dict[str, Any]] = {"topic_partitions": [], "rebalance_timeout_ms": 1000}
TRIED: Final = 12
MAX: Final = 5


def rows() -> list[list[str]]:
    """The cells of the page's rows."""
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    table = [line for line in lines if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def named(row: list[str]) -> list[str]:
    """The tables that a row is of, as file and attribute."""
    file, *attributes = re.findall(r"`([^`]+)`", row[0])
    return [f"{file} {each}" for each in attributes]


def found() -> Iterator[str]:
    """The tables in the source, as file and attribute."""
    for pattern in LOOKED_AT:
        for path in sorted(SOURCE.glob(pattern)):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    file = path.relative_to(SOURCE).as_posix()
                    yield from (f"{file} {node.name}.{each}" for each in _tables_of(node))


def _tables_of(node: ast.ClassDef) -> Iterator[str]:
    fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
    inner = [each for each in ast.walk(node) if isinstance(each, ast.AnnAssign)]
    for each in inner:
        target, kind = each.target, ast.unparse(each.annotation).partition("[")[0]
        if kind not in TABLES:
            continue
        if isinstance(target, ast.Attribute):
            yield target.attr
        elif each in fields and isinstance(target, ast.Name):
            yield target.id


def test_every_table_is_on_the_page() -> None:
    """A new one is bounded, or it is said why it need not be."""
    assert {each.split()[1] for each in found()} >= NOT_OF_CLIENTS.keys()
    there = {each for each in found() if each.split()[1] not in NOT_OF_CLIENTS}
    assert there == {each for row in rows() for each in named(row)}


def groups() -> int:
    """Groups that each a member joins."""
    scenario = Scenario(memory_bytes_max=MAX * 8192)
    for number in range(10 * TRIED):
        request = join_request(f"group-{number}")
        join = Join(GroupJoin.of(request, "c"), 3, Client("c", "/h"), 1000 + number)
        scenario.perform(scenario.shard.join(join, scenario.now_ms))
    assert scenario.shard.account.held <= MAX * 8192
    return len(scenario.shard.groups)


def members() -> int:
    """Static members, which stay though they miss a rebalance: twice as many, and no more."""
    scenario = Scenario(members_max=MAX)
    for number in range(10 * TRIED):
        scenario.join("a", version=3, instance=f"i-{number}")
        scenario.pass_time(1)
    assert len(scenario.group.static) == len(scenario.group.members) >= len(scenario.group.unsynced)
    return len(scenario.group.members) // 2


def pending() -> int:
    """Ids that nobody joins with."""
    scenario = Scenario(members_max=MAX)
    for _ in range(TRIED):
        scenario.join("a")
    return len(scenario.group.pending)


def consumers() -> int:
    """Members of the consumer protocol; what they are given is of partitions that exist."""
    scenario = ConsumerScenario({"t": 3}, members_max=MAX)
    for number in range(TRIED):
        names = ["t", f"unknown-{number}"]
        scenario.beat(
            f"m{number}", 0, instance_id=f"i{number}", subscribed_topic_names=names, **JOINS
        )
    group = scenario.consumers
    assert len(group.static) == len(group.target) == len(group.members)
    assert (len(group.owners), list(group.topics)) == (3, ["t"])
    return len(group.members)


def expressions() -> int:
    """Members that each subscribe to an expression of their own."""
    scenario = ConsumerScenario({"t": 1})
    for number in range(EXPRESSIONS_MAX + TRIED):
        scenario.beat(f"m{number}", 0, subscribed_topic_regex=f"t{number}", **JOINS)
    return len(scenario.consumers.expressions) - EXPRESSIONS_MAX + MAX


def known_expressions() -> int:
    """Expressions of whichever groups."""
    known = Expressions(remembered_max=MAX)
    known.on_topics(["t"])
    for number in range(TRIED):
        known.matched(f"t{number}")
    return len(known)


def timers() -> int:
    """What is waited for goes with the members."""
    scenario = Scenario(members_max=MAX)
    for _ in range(TRIED):
        scenario.join("a", version=3)
    scenario.pass_time(1_000_000)
    return 0 if scenario.shard.next_ms is None else TRIED


def transactional_ids() -> int:
    """Ids of as many producers."""
    limits = TransactionScenario().limits
    shard = Transactions(limits)
    shard.limits = limits.__class__(
        timeout_max_ms=limits.timeout_max_ms,
        expiration_ms=limits.expiration_ms,
        memory_bytes_max=MAX * 1024,
    )
    for number in range(TRIED):
        asked = Initialisation(transactional_id=f"{number:0250}", timeout_ms=1000)
        for record in shard.initialise(asked, "w", 1, fresh_id=number).records:
            shard.replay(record, 1)
    return len(shard.transactions)


def producers() -> int:
    """Producers with a batch each."""
    state = ProducerState(MAX)
    for number in range(TRIED):
        batch = ProducerBatch(
            number, 0, 0, 0, number, number, 1, transactional=False, control=False
        )
        state.commit(state.check([batch], Origin.CLIENT), number + 1)
    return len(state.producers)


def sessions() -> int:
    """Sessions that are opened at once."""
    cache, ids = SessionCache(slots=MAX, eviction_ms=1000), iter(range(1, 10 * TRIED))
    for _ in range(TRIED):
        asked = SessionRequest(0, 0, "owner", by_topic_id=False)
        cache.begin(asked, {}, draw_id=lambda: next(ids), now_ms=1)
    return len(cache.sessions)


def decisions() -> int:
    """Questions about so many topics."""
    authorizer = AclAuthorizer(Rules(), monotonic_s=lambda: 0.0)
    for number in range(DECISIONS_MAX + TRIED):
        topic = ResourcePattern(ResourceType.TOPIC, f"t{number}")
        authorizer.authorize(ANONYMOUS, "h", AclOperation.READ, topic, audited=False)
    return len(authorizer._current.decisions) - DECISIONS_MAX + MAX


def audited() -> int:
    """Refusals of so many principals."""
    authorizer = AclAuthorizer(Rules(), monotonic_s=lambda: 0.0)
    topic = ResourcePattern(ResourceType.TOPIC, "t")
    for number in range(SOURCES_MAX + TRIED):
        authorizer.authorize(Principal("User", f"u{number}"), "h", AclOperation.READ, topic)
    return len(authorizer.audit._windows) - (SOURCES_MAX + 1) + MAX


def addresses() -> int:
    """Addresses that connect, and come back."""
    quotas = ConnectionQuotas(ConnectionLimits(MAX, MAX, {}, {}, 0, {}, frozenset()))
    for number in range(10 * TRIED):
        address = f"10.0.0.{number}"
        if quotas.has_room("L") and not quotas.refuses(address):
            quotas.opened("L", address, 0.0)
        if number % 3 == 0:
            left = next(iter(quotas.of_address))
            quotas.closed("L", left)
    return len(quotas.of_address)


def throttled_connections() -> int:
    """Connections of an address that opens too many."""

    async def open_many() -> int:
        settings = BrokerSettings.from_mapping({"listeners": "PLAINTEXT://127.0.0.1:0"})
        listener = Listener.bind(
            settings.listeners[0], settings, lambda: cast(BrokerServices, None)
        )
        listener._loop = asyncio.get_running_loop()
        for _ in range(THROTTLED_MAX + TRIED):
            listener._hold_up(socket.socket(), 1000)
        held = len(listener._throttled)
        await listener.close()
        return held - THROTTLED_MAX + MAX

    return asyncio.run(open_many())


def holders() -> int:
    """Clients whose large requests wait; the first may always."""
    heavy = OffloadPool(waiting_bytes_max=MAX, least_bytes=1)
    for number in range(10 * TRIED):
        with suppress(KafkaError):
            heavy.reserve(1, flow_of(ANONYMOUS, f"10.0.0.{number}", 1))
    heavy.close()
    return len(heavy._held)


def flows() -> int:
    """Clients that each have one thing done."""
    queue: FairQueue[int] = FairQueue()
    most = 0
    for number in range(2 * FLOWS_MAX):
        queue.push(number, f"client-{number}", 1)
        queue.pop()
        most = max(most, len(queue._ends))
    return most * MAX // (FLOWS_MAX + 3)


def long_requests() -> int:
    """Addresses that each have one long request served while others wait."""

    async def ask() -> int:
        requests, most = LongRequests(), 0
        for number in range(2 * CLIENTS_MAX):
            while len(requests) < 3:
                requests.join(lambda: None, ANONYMOUS, f"client-{number}-{len(requests)}", 1.0)
            requests._next()
            most = max(most, len(requests._ends), len(requests._queues))
        return most

    return asyncio.run(ask()) * MAX // CLIENTS_MAX


def sensors() -> int:
    """Client ids that each have a quota of their own."""
    manager = QuotaManager.of(
        {QuotaEntity(None, DEFAULT): 1.0},
        lambda limit, _: RateSensor(limit, windows=11, window_ms=1000),
    )
    for number in range(SENSORS_MAX + TRIED):
        manager.sensor("u", f"client-{number}", number)
    return len(manager) - SENSORS_MAX + MAX


def tokens() -> int:
    """A user that asks for one token after the other."""

    async def ask() -> int:
        manager = DelegationTokenManager(
            Ensemble().session(), BrokerSettings.from_mapping({}), "secret", clock_ms=lambda: 1
        )
        await manager.load()
        for _ in range(TRIED):
            with suppress(KafkaError):
                await manager.create(ANONYMOUS, ANONYMOUS, (), lifetime_ms=-1)
        await manager.stop()
        return len(manager.cache.tokens)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delegation_token_manager, "TOKENS_MAX", MAX)
        return asyncio.run(ask())


FILLERS: Final[dict[str, Callable[[], int]]] = {
    "coordinator/group/shard.py Shard.groups": groups,
    "coordinator/group/group.py Group.members": members,
    "coordinator/group/group.py Group.pending": pending,
    "coordinator/group/consumer/group.py ConsumerGroup.members": consumers,
    "coordinator/group/consumer/group.py ConsumerGroup.expressions": expressions,
    "coordinator/group/consumer/expressions.py Expressions._known": known_expressions,
    "coordinator/timers.py Timers._deadlines": timers,
    "coordinator/transaction/shard.py Shard.transactions": transactional_ids,
    "log/producer_state.py ProducerState.producers": producers,
    "replica/fetch_session.py SessionCache.sessions": sessions,
    "server/network/connection_quotas.py ConnectionQuotas.of_address": addresses,
    "server/process/offload_pool.py OffloadPool._held": holders,
    "server/network/listener.py Listener._throttled": throttled_connections,
    "server/process/fair_queue.py FairQueue._ends": flows,
    "server/network/long_requests.py LongRequests._ends": long_requests,
    "quota/manager.py QuotaManager._sensors": sensors,
    "security/authorizer.py _Current.decisions": decisions,
    "security/audit.py AuditLog._windows": audited,
    "security/delegation_tokens.py TokenCache.tokens": tokens,
}
"""What fills the first table of each row beyond a bound of `MAX`; how much is in it then."""


def test_every_bound_is_tried() -> None:
    """But for those that the page says there is none of."""
    bounded = {named(row)[0] for row in rows() if not row[2].startswith("none")}
    assert bounded == FILLERS.keys()


@pytest.mark.parametrize("table", FILLERS)
def test_a_table_that_is_filled_stays_within_its_bound(table: str) -> None:
    """Whatever clients send."""
    held = FILLERS[table]()
    assert held <= (MAX * 4 if table.endswith("Shard.groups") else MAX)
