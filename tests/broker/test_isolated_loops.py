"""Loops over groups, transactions, topics and the like: one item fails, and the others finish.

`LOOPS` is the table, of loops in background work and between the parts of a broker; those of
requests are in `server/test_failure_isolation.py`. In each the item `bad` fails, among others that
come before and after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas_broker.controller import events
from barnabas_broker.controller.isr_changes import InSyncChange, IsrRequest
from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.controller.transitions import leader_election
from barnabas_broker.coordinator import runtime
from barnabas_broker.coordinator.group import commits
from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.records import OffsetRecord
from barnabas_broker.coordinator.group.results import CoordinatorResult
from barnabas_broker.coordinator.transaction.transaction import Transaction
from barnabas_broker.coordinator.waiting import Parked
from barnabas_broker.replica.delayed_operation import DelayedOperation
from barnabas_broker.replica.manager import ReplicaManager
from barnabas_broker.server.background.background_tasks import BackgroundTasks
from barnabas_broker.server.background.log_mover import LogMover
from barnabas_broker.server.control.delegation_token_manager import DelegationTokenManager
from barnabas_broker.server.control.security_state import SecurityState
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from tests.broker.controller.ensemble import Cluster
from tests.broker.coordinator.group.scenarios import Scenario as GroupScenario
from tests.broker.coordinator.transaction.scenarios import T0, TIMEOUT_MS
from tests.broker.coordinator.transaction.scenarios import Scenario as TransactionScenario

NAMES = ("a", "bad", "z")
OTHERS = ["a", "z"]
DAY_MS = 86_400_000


def fail_for(name: object) -> None:
    """Fail as a defect does, for `bad` alone."""
    if name == "bad":
        raise ZeroDivisionError("a defect")


def of_each(patch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    """Have a function fail whose first argument is `bad`."""
    real = getattr(owner, name)

    def faulty(first: Any, *args: Any, **more: Any) -> Any:
        fail_for(getattr(first, "id", first))
        return real(first, *args, **more)

    patch.setattr(owner, name, faulty)


# Coordinators.


def groups_with_offsets() -> GroupScenario:
    """Three groups without members, each with an offset of topic t."""
    scenario = GroupScenario()
    scenario.commit()
    offsets = scenario.group.offsets
    scenario.shard.groups.clear()
    for name in NAMES:
        scenario.shard.groups[name] = Group(
            name, now_ms=scenario.now_ms, whole=scenario.shard.account
        )
        scenario.shard.groups[name].offsets.update(offsets)
    return scenario


def named(turns: Iterable[CoordinatorResult]) -> list[str]:
    """The groups whose offsets some turns delete."""
    records = [record for result in turns for record in result.records]
    return [record.group_id for record in records if isinstance(record, OffsetRecord)]


def offsets_expire(patch: pytest.MonkeyPatch) -> list[str]:
    """Of groups that nobody uses."""
    scenario = groups_with_offsets()
    of_each(patch, commits, "expired")
    return named(scenario.shard.expire(scenario.now_ms + scenario.limits.retention_ms + DAY_MS))


def offsets_of_deleted_topics(patch: pytest.MonkeyPatch) -> list[str]:
    """Of all groups."""
    scenario = groups_with_offsets()
    of_each(patch, commits, "tombstones")
    return named(scenario.shard.forget_topics({"t"}, scenario.now_ms))


def groups_resign(patch: pytest.MonkeyPatch) -> list[str]:
    """Members that wait are sent away."""
    scenario = GroupScenario()
    for name in NAMES:
        member = SimpleNamespace(id=name, joining=name, syncing=None)
        group: Any = SimpleNamespace(id=name, members={name: member})
        scenario.shard.groups[name] = group

    def answer(self: CoordinatorResult, waiter: str, response: object) -> None:
        fail_for(waiter)
        self.answers.append((waiter, response))

    patch.setattr(CoordinatorResult, "answer", answer)
    return [str(waiter) for waiter, _ in scenario.shard.resign(scenario.now_ms).answers]


def transactions() -> TransactionScenario:
    """Three transactional ids, each with an open transaction."""
    scenario = TransactionScenario()
    scenario.add(scenario.begun(), T0)
    begun = scenario.transaction
    scenario.shard.transactions.clear()
    for name in NAMES:
        scenario.shard.transactions[name] = replace(begun, id=name)
    return scenario


def transactions_time_out(patch: pytest.MonkeyPatch) -> list[str]:
    """Those whose producers are silent."""
    scenario = transactions()
    of_each(patch, Transaction, "timed_out")
    turns = scenario.shard.abort_timed_out(scenario.now_ms + TIMEOUT_MS + DAY_MS)
    return [record.transactional_id for result in turns for record in result.records]


class Waiter(Parked):
    """A client that waits; the connection of one is broken in a way that nobody foresaw."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def refusal(self, error: KafkaError) -> object:
        return error

    def there(self) -> None:
        fail_for(self.name)


def waiting() -> tuple[list[Waiter], CoordinatorResult]:
    """Three of them, and a turn that answers all."""
    waiters = [Waiter(name) for name in NAMES]
    result = CoordinatorResult(0)
    result.answers = [(each, "answer") for each in waiters]
    return waiters, result


def answered(waiters: list[Waiter]) -> list[str]:
    """Those that have been answered, but for the broken one."""
    return [each.name for each in waiters if each.done() and each.name != "bad"]


def members_are_answered(_: pytest.MonkeyPatch) -> list[str]:
    """When a group has come together."""
    waiters, result = waiting()
    runtime._complete(result)
    return answered(waiters)


def members_are_refused(_: pytest.MonkeyPatch) -> list[str]:
    """When records do not count."""
    waiters, result = waiting()
    runtime._fail(result, ErrorCode.NOT_COORDINATOR)
    return answered(waiters)


def orders_are_carried_out(_: pytest.MonkeyPatch) -> list[str]:
    """Markers of transactions, for example."""
    done: list[str] = []

    def carry_out(_held: object, order: object) -> None:
        fail_for(order)
        done.append(str(order))

    async def main() -> None:
        held: Any = SimpleNamespace(partition=SimpleNamespace(tp="t-0"))
        kind: Any = SimpleNamespace()
        its: Any = runtime.Runtime(
            "t",
            kind,
            leader=lambda _: held.partition,
            limits=lambda: runtime.Limits(load_buffer_bytes=1, timeout_ms=1),
            new_shard=SimpleNamespace,
            carry_out=carry_out,
            clock_ms=lambda: 0,
        )
        its._held[0] = held
        result = CoordinatorResult(0)
        result.orders = list(NAMES)
        its._hand_out(held, result)

    asyncio.run(main())
    return done


# Replicas.


class Verdicts(DelayedOperation[Any]):
    """A request that waits on partitions, all of which are decided."""

    __slots__ = ()

    def _verdict(self, part: Any) -> ErrorCode:
        return ErrorCode.NONE

    def _waiters(self, part: Any) -> set[Any]:
        waiters: set[Any] = part.waiters
        return waiters


def verdicts(act: Callable[[Verdicts], None]) -> list[str]:
    """The partitions whose verdict was heard; the request is answered either way."""
    reported: list[str] = []

    def callback(name: str) -> Callable[[ErrorCode], None]:
        def tell(_: ErrorCode) -> None:
            fail_for(name)
            reported.append(name)

        return tell

    async def main() -> None:
        parts = [
            SimpleNamespace(partition=it, complete=callback(it), waiters=set()) for it in NAMES
        ]
        loop = asyncio.get_running_loop()
        operation = Verdicts(loop, parts, timeout_ms=60_000, response="answer")
        act(operation)
        assert operation.future.result() == "answer"
        assert not any(each.waiters for each in parts)

    asyncio.run(main())
    return reported


def waits_are_decided(_: pytest.MonkeyPatch) -> list[str]:
    """The high watermark has moved."""
    return verdicts(Verdicts.look)


def waits_time_out(_: pytest.MonkeyPatch) -> list[str]:
    """It has not moved in time."""
    return verdicts(Verdicts._expire)


def partitions_are_given_up(_: pytest.MonkeyPatch) -> list[str]:
    """Of a topic that is deleted, though replication of one cannot be ended."""
    tps = [TopicPartition("t", index) for index in range(len(NAMES))]
    given_up: list[str] = []
    manager: Any = object.__new__(ReplicaManager)
    manager._retries, manager._out_of_reach, manager._failed, manager.traffic = {}, set(), {}, {}
    manager._copying = SimpleNamespace(leave=lambda tp: fail_for(NAMES[tp.partition]))
    manager._partitions = {tp: SimpleNamespace(tp=tp) for tp in tps}
    manager._give_up = lambda partition: given_up.append(NAMES[partition.tp.partition])
    manager._logs = SimpleNamespace(logs={})
    topic: Any = SimpleNamespace(name="t", partitions=tps)
    ReplicaManager._drop(manager, topic, {})
    assert given_up == list(NAMES)  # Replication of it has ended as far as it goes.
    return [name for name in given_up if name != "bad"]


# Background work.


def segments_are_counted(_: pytest.MonkeyPatch) -> list[str]:
    """Of logs whose segments came without their numbers; one's cannot be listed, one has failed."""
    counted: list[str] = []

    class Log:
        failure = None

        def __init__(self, name: str) -> None:
            self.tp = name
            self.segments = self

        @property
        def uncounted(self) -> list[Any]:
            fail_for(self.tp)
            return [SimpleNamespace(size=1, file=self.tp)]

    async def each(_doing: str, works: Any) -> None:
        counted.extend(work.args[1] for work in works)

    failed: Any = Log("failed")
    failed.failure = OSError()
    tasks: Any = object.__new__(BackgroundTasks)
    tasks._logs = SimpleNamespace(logs=dict(enumerate([failed, *map(Log, NAMES)])))
    tasks._each_in_thread = each
    asyncio.run(BackgroundTasks._count_segments(tasks))
    return counted


def moves_are_resumed(_: pytest.MonkeyPatch) -> list[str]:
    """Between log directories, after a start."""
    begun: list[str] = []

    def begin(tp: str, _target: object, *, found: object) -> None:
        fail_for(tp)
        begun.append(tp)

    target = SimpleNamespace(path=Path("b"))
    mover: Any = object.__new__(LogMover)
    mover._logs = SimpleNamespace(
        unfinished={name: (target, Path(name)) for name in NAMES},
        logs=dict.fromkeys(NAMES),
        home_of=lambda _: None,
    )
    mover._begin = begin
    LogMover.start(mover)
    return begun


def tokens_expire(_: pytest.MonkeyPatch) -> list[str]:
    """Those that could be removed are; the error is raised when all were tried."""
    removed: list[str] = []

    def remove(name: str) -> None:
        fail_for(name)
        removed.append(name)

    async def run(work: Callable[[], None]) -> None:
        work()

    manager: Any = object.__new__(DelegationTokenManager)
    manager._clock_ms = lambda: 0
    tokens = [SimpleNamespace(id=name, has_expired=lambda _: True) for name in NAMES]
    manager.cache = SimpleNamespace(tokens=dict(enumerate(tokens)))
    manager._run, manager._remove = run, remove
    with pytest.raises(KafkaError):
        asyncio.run(DelegationTokenManager.remove_expired(manager))
    return removed


def changes_of_znodes(owner: Any, names: tuple[str, ...], subject: Any) -> list[str]:
    """The parts that hear of a change."""
    heard: list[str] = []

    def callback(name: str) -> Callable[[object], None]:
        def heard_of(_: object) -> None:
            fail_for(name)
            heard.append(name)

        return heard_of

    parts = [SimpleNamespace(on_znode_change=callback(name)) for name in names]
    owner(subject, *parts)
    return heard


def acls_and_tokens_are_read(_: pytest.MonkeyPatch) -> list[str]:
    """Tokens, where the change cannot be told to ACLs; `a` stands for what needs no turn."""

    def on_znode_change(state: Any, acls: object, tokens: object) -> None:
        state.acls, state.tokens = acls, tokens
        SecurityState.on_znode_change(state, "/path")

    state = object.__new__(SecurityState)
    return ["a", *changes_of_znodes(on_znode_change, ("bad", "z"), state)]


def security_hears_though_the_controller_fails(_: pytest.MonkeyPatch) -> list[str]:
    """Of a znode that another broker wrote."""

    def on_znode_change(node: Any, controller: Any, security: object) -> None:
        node._security = security
        BrokerServer._on_znode_change(node, controller, "/path")

    node = object.__new__(BrokerServer)
    return ["a", *changes_of_znodes(on_znode_change, ("bad", "z"), node)]


# The controller.


def leaders_are_balanced(patch: pytest.MonkeyPatch) -> list[str]:
    """Preferred leaders get their partitions back, but for the one that cannot be looked at."""
    cluster = Cluster(3)
    cluster.create(*(NewTopic(name=name, assignments=[(0, (2, 1))]) for name in NAMES))
    cluster.kill(2)
    cluster.settle()
    cluster.start(2)
    cluster.settle()
    assert [cluster.leaders(name)[0][0] for name in NAMES] == [1, 1, 1]
    for name in NAMES:  # It has caught up.
        state = cluster.image.topics[name].partitions[0]
        back = InSyncChange(name, 0, state.leader_epoch, state.partition_epoch, (2, 1))
        request = IsrRequest(1, cluster.image.brokers[1].epoch, [back], 2)
        cluster.process(events.AlterPartitionReceived(request))
        cluster.settle()
    real = leader_election._elected

    def faulty(context: Any, kind: Any, tp: TopicPartition) -> Any:
        fail_for(tp.topic)
        return real(context, kind, tp)

    patch.setattr(leader_election, "_elected", faulty)
    cluster.process(events.AutoPreferredReplicaLeaderElection(0))
    cluster.settle()
    return [name for name in NAMES if cluster.leaders(name)[0][0] == 2]


LOOPS = [
    offsets_expire,
    offsets_of_deleted_topics,
    groups_resign,
    transactions_time_out,
    members_are_answered,
    members_are_refused,
    orders_are_carried_out,
    waits_are_decided,
    waits_time_out,
    partitions_are_given_up,
    segments_are_counted,
    moves_are_resumed,
    tokens_expire,
    acls_and_tokens_are_read,
    security_hears_though_the_controller_fails,
    leaders_are_balanced,
]


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_the_others_finish(
    loop: Callable[[pytest.MonkeyPatch], list[str]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whatever the error with one of them; it is logged."""
    assert loop(monkeypatch) == OTHERS
    assert "a defect" in caplog.text
