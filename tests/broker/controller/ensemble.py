"""Several controllers on one ensemble, without sockets or logs: a real znode tree that they share.

`Ensemble` keeps sessions and watches as ZooKeeper does; `Cluster` runs a Controller per broker,
hands them what they hear of, and carries the orders of the one that reigns to the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from types import SimpleNamespace
from typing import Any

from barnabas_broker.cluster.image import OWN_SOFTWARE, BrokerRegistration, Endpoint, MetadataImage
from barnabas_broker.controller.careful_election import EndsAnswer, LogEnd
from barnabas_broker.controller.controller import Controller
from barnabas_broker.controller.events import Event, TopicDeletionStopReplicaResponseReceived
from barnabas_broker.controller.target_state import Orders, Sender, TargetState, ends_wanted, orders
from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.security.authorizer import AllowAll, Authorizer
from barnabas_broker.security.principals import ANONYMOUS
from barnabas_broker.server.control.controller_thread import ControllerThread
from barnabas_broker.server.peers.controller_channel_manager import own_answers, storage_answers
from barnabas_broker.server.requests.handler import Handle
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_broker.zk.store import Committed, CoordinationError, Stat, Subscriber, Watch
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)
from barnabas_kafka.protocol.schema import Message
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_zookeeper.tree import (
    CloseSession,
    EventType,
    OpenSession,
    Operation,
    Session,
    Tree,
)
from tests.broker.controller.embedded import finished

NOW_MS = 1_700_000_000_000


class Lost(Enum):
    """Which message of a transaction is lost, and the connection with it."""

    REQUEST = "request"
    ANSWER = "answer"


class Ensemble:
    """A znode tree, and who watches what."""

    def __init__(self) -> None:
        self.tree = Tree()
        self._watches: set[tuple[str, Watch, SharedStore]] = set()
        self._sessions = 0

    def session(self) -> SharedStore:
        """A new session."""
        self._sessions += 1
        return SharedStore(self, self._sessions)

    def commit(self, operations: Sequence[Operation]) -> Committed:
        """Apply a transaction, and tell who watches."""
        committed = self.tree.commit(operations, now_ms=NOW_MS)
        for event in committed.events:
            children = event.type is EventType.CHILDREN_CHANGED
            kind = Watch.CHILDREN if children else Watch.DATA
            for watch in [each for each in self._watches if each[:2] == (event.path, kind)]:
                self._watches.remove(watch)
                watch[2].heard.add(event.path)
        return committed

    def watch(self, path: str, kind: Watch, store: SharedStore) -> None:
        """Have that session hear of the next change."""
        self._watches.add((path, kind, store))


@dataclass(eq=False)
class SharedStore:
    """A CoordinationStore that is one session of an ensemble; `heard` is what it was told.

    What is in `losses` happens to its next transactions. Until one is answered, what is in `behind`
    is read in place of what there is: the session is at a member that lags.
    """

    ensemble: Ensemble
    session: int
    transaction_bytes_max: int = 1 << 19
    heard: set[str | None] = field(default_factory=set)
    losses: list[Lost] = field(default_factory=list)
    behind: dict[str, tuple[bytes | None, Stat]] = field(default_factory=dict)

    def get(self, path: str) -> tuple[bytes | None, Stat]:
        """Data and stat."""
        return self.behind.get(path) or self.ensemble.tree.get(path)

    def get_many(self, paths: Sequence[str]) -> list[tuple[bytes | None, Stat] | None]:
        """Data and stat of each, None for none."""
        return [self.get(path) if self.exists(path) is not None else None for path in paths]

    def exists(self, path: str) -> Stat | None:
        """The stat, None for none."""
        return self.ensemble.tree.exists(path)

    def children(self, path: str) -> list[str]:
        """Names of the children."""
        return self.ensemble.tree.children(path)

    def children_many(self, paths: Sequence[str]) -> list[list[str] | None]:
        """Names of the children of each, None for none."""
        return [self.children(path) if self.exists(path) is not None else None for path in paths]

    def commit(self, operations: Sequence[Operation], *, now_ms: int) -> Committed:
        """All or nothing."""
        lost = self.losses.pop(0) if self.losses else None
        if lost is Lost.REQUEST:
            raise CoordinationError("the connection was lost")
        committed = self.ensemble.commit(operations)
        if lost is Lost.ANSWER:
            raise CoordinationError("the connection was lost")
        self.behind.clear()
        return committed

    def take_heard(self) -> bool:
        """Whether it was told of anything since the last time."""
        reported = bool(self.heard)
        self.heard.clear()
        return reported

    def subscribe(self, subscriber: Subscriber) -> None:
        """The cluster looks at `heard` instead."""

    def watch(self, path: str, kind: Watch) -> None:
        """Hear of the next change."""
        self.ensemble.watch(path, kind, self)

    def watch_many(self, paths: Sequence[str], kind: Watch) -> None:
        """Hear of the next change of each."""
        for path in paths:
            self.watch(path, kind)

    def wait_until_gone(self, path: str) -> bool:
        """Nothing goes while somebody waits."""
        return self.exists(path) is None

    def close(self) -> None:
        """End the session, and with it its znodes."""
        gone = [CloseSession(self.session)] if self.session in self.ensemble.tree.sessions() else []
        self.ensemble.commit(gone)


@dataclass(frozen=True)
class Disks:
    """The log directories of one broker."""

    broker: int
    counted_out: set[tuple[int, TopicPartition]]

    @property
    def all_usable(self) -> bool:
        """Of all brokers, here."""
        return not self.counted_out

    def is_counted_out(self, tp: TopicPartition) -> bool:
        """Whether a replica of the broker has no disk."""
        return (self.broker, tp) in self.counted_out

    def log_end(self, tp: TopicPartition, leader_epoch: int) -> tuple[int, int]:
        """Nobody asks."""
        raise AssertionError((tp, leader_epoch))


class Cluster:
    """Brokers 1, 2, … on one ensemble, each in a rack of its own; they start one after the other.

    `stops` is what each was told to give up: topic, partition, and whether to delete it;
    `counted_out` are the replicas that have no disk to speak of.
    """

    def __init__(self, brokers: int, settings: Mapping[str, str] | None = None) -> None:
        self.ensemble = Ensemble()
        self.settings = dict(settings or {})
        self.controllers: dict[int, Controller] = {}
        self.stores: dict[int, SharedStore] = {}
        self.stops: dict[int, list[tuple[TopicPartition, bool]]] = {}
        self.counted_out: set[tuple[int, TopicPartition]] = set()
        #: how far replicas say that their logs go; others do not answer
        self.ends: dict[tuple[int, TopicPartition], LogEnd] = {}
        self._reported: dict[tuple[int, int, int], TargetState] = {}
        for broker in range(1, brokers + 1):
            self.start(broker)

    def start(self, broker: int, *, unclean: bool = False) -> None:
        """A new process of that broker, which may say that the last was not stopped in order."""
        store = self.ensemble.session()
        self.ensemble.commit([OpenSession(store.session, Session(6000, b""))])
        controller = Controller(
            store,
            broker_id=broker,
            settings=BrokerSettings.from_mapping({"broker.id": str(broker), **self.settings}),
            random=Random(broker),
        )
        self.controllers[broker], self.stores[broker] = controller, store
        self.stops[broker] = []
        controller.join(cluster_id=None, now_ms=NOW_MS)
        endpoint = Endpoint("PLAINTEXT", f"b{broker}", 9092)
        registration = BrokerRegistration(
            broker, (endpoint,), f"rack {broker}", software=OWN_SOFTWARE, unclean=unclean
        )
        controller.register(registration, now_ms=NOW_MS)
        controller.contest(now_ms=NOW_MS)
        controller.catch_up(None, now_ms=NOW_MS)
        self.settle()

    def kill(self, *brokers: int) -> None:
        """The processes go, and their sessions with them."""
        for broker in brokers:
            del self.controllers[broker]
            self.stores.pop(broker).close()
        self.settle()

    def settle(self) -> None:
        """Let everybody hear and obey until there is nothing left to be heard."""
        while True:
            for broker, store in list(self.stores.items()):
                heard, store.heard = store.heard, set()
                if heard:
                    paths = {path for path in heard if path is not None}
                    self.controllers[broker].catch_up(paths, now_ms=NOW_MS)
            carried = [self._carry(controller) for controller in self.controllers.values()]
            if not any(carried) and not any(store.heard for store in self.stores.values()):
                return

    def _carry(self, controller: Controller) -> bool:
        view = controller.view
        if view is None:
            return False
        own = controller.image.controller_id
        sender = Sender(own, controller.epoch, "PLAINTEXT")
        news = False
        for broker, registration in view.image.brokers.items():
            key = (own, sender.controller_epoch, broker)
            reported = self._reported.get(key)
            if reported is not None and reported == view:
                continue
            if broker == own:
                self._reported[key] = view
                answered = own_answers(own, view, Disks(own, self.counted_out))
                controller.storage_answered(own, answered, now_ms=NOW_MS)
                news = True
                continue
            self._reported[key] = view
            if broker in self.controllers:
                given = orders(registration, reported, view, sender)
                self.obey(broker, given)
                if given.leader_and_isr is not None:
                    answer = self._answer(broker, given.leader_and_isr)
                    answered = storage_answers(given.leader_and_isr, answer)
                    controller.storage_answered(broker, answered, now_ms=NOW_MS)
                stopped = TopicDeletionStopReplicaResponseReceived(broker, view.deleting, ())
                controller.active.process(stopped, now_ms=NOW_MS)
                news = True
        return self._ask_ends(controller) or news

    def _ask_ends(self, controller: Controller) -> bool:
        news = False
        for broker in self.controllers:
            view = controller.view
            if view is None or broker not in view.image.brokers:
                continue
            answered = {
                tp: EndsAnswer(epoch, self.ends[broker, tp])
                for tp, epoch in ends_wanted(broker, view).items()
                if (broker, tp) in self.ends
            }
            if answered:
                epoch = view.image.brokers[broker].epoch
                controller.ends_answered(broker, epoch, answered, now_ms=NOW_MS)
                news = True
        return news

    def _answer(self, broker: int, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        disks = Disks(broker, self.counted_out)
        errors = [
            LeaderAndIsrPartitionError(
                topic_name=topic.topic_name,
                partition_index=each.partition_index,
                error_code=ErrorCode.KAFKA_STORAGE_ERROR
                if disks.is_counted_out(TopicPartition(topic.topic_name, each.partition_index))
                else ErrorCode.NONE,
            )
            for topic in request.topic_states
            for each in topic.partition_states
        ]
        return LeaderAndIsrResponse(partition_errors=errors)

    def disk(self, broker: int, *replicas: TopicPartition, works: bool) -> None:
        """A log directory with these replicas fails or recovers, and the controller is told."""
        there = {(broker, tp) for tp in replicas}
        self.counted_out = self.counted_out - there if works else self.counted_out | there
        self.controllers[broker].propagate_log_dir_event(now_ms=NOW_MS)
        self.settle()

    def obey(self, broker: int, given: Orders) -> list[ErrorCode]:
        """Do what a broker is ordered, and answer as it does."""
        controller = self.controllers[broker]
        codes = []
        for request in (given.leader_and_isr, given.update_metadata, given.stop_replica):
            if request is None:
                continue
            code = controller.accept_controller(request.controller_epoch, request.broker_epoch)
            codes.append(code or ErrorCode.NONE)
            if code is not None:
                continue
            if request is given.leader_and_isr:
                assert given.leader_and_isr is not None
                codes += controller.member.take_leadership(given.leader_and_isr).values()
            elif given.stop_replica is not None and request is given.stop_replica:
                for topic in given.stop_replica.topic_states:
                    for state in topic.partition_states:
                        tp = TopicPartition(topic.topic_name, state.partition_index)
                        self.stops[broker].append((tp, state.delete_partition))
            elif given.update_metadata is not None:
                controller.member.take_metadata(given.update_metadata)
        return codes

    @property
    def active_controller(self) -> Controller:
        """The one controller."""
        (found,) = (each for each in self.controllers.values() if each.is_active)
        return found

    @property
    def image(self) -> MetadataImage:
        """What the controller serves, which all others serve as well."""
        image = self.active_controller.image
        for controller in self.controllers.values():
            assert controller.image.topics == image.topics
            assert set(controller.image.brokers) == set(image.brokers)
            assert controller.image.controller_id == image.controller_id
        return image

    def create(self, *topics: NewTopic) -> None:
        """Create topics at the controller."""
        created = self.active_controller.create_topics(topics, principal=ANONYMOUS, now_ms=NOW_MS)
        assert all(each.outcome.granted for each in created), created
        self.settle()

    def process(self, event: Event) -> Any:
        """What the controller answers to an event."""
        return self.active_controller.active.process(event, now_ms=NOW_MS)

    def leaders(self, topic: str) -> list[tuple[int, Iterable[int]]]:
        """Leader and in-sync replicas of each partition."""
        return [(each.leader, each.isr) for each in self.image.topics[topic].partitions]

    def ask(
        self,
        broker: int,
        handle: Handle,
        request: Message,
        version: int,
        *,
        replicas: object = None,
        link: object = None,
        producer_ids: object = None,
        authorizer: Authorizer | None = None,
    ) -> Any:
        """The answer of a broker's handler."""

        async def serve() -> Any:
            loop = asyncio.get_running_loop()
            thread = ControllerThread(self.controllers[broker], loop=loop, clock_ms=lambda: NOW_MS)
            parts: Any = SimpleNamespace(
                id=broker,
                controller=thread,
                replicas=replicas,
                link=link,
                producer_ids=producer_ids,
                image=thread.image,
                settings=thread.settings,
            )
            call = RequestContext(
                api_key=request.api_key,
                version=version,
                correlation_id=1,
                client_id="test",
                principal=ANONYMOUS,
                listener="PLAINTEXT",
                client_host="127.0.0.1",
                now_ms=NOW_MS,
                authorizer=authorizer or AllowAll(),
                broker=parts,
            )
            try:
                answer = finished(handle(request, call))
                while isinstance(answer, asyncio.Future):
                    answer = finished(await answer)
                return answer
            finally:
                await thread.stop()

        return asyncio.run(serve())
