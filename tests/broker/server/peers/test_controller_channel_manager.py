"""Channels to other brokers: what each is told, and told again after a failure."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

import pytest

from barnabas_broker.cluster.image import (
    BrokerRegistration,
    Endpoint,
    MetadataImage,
    PartitionState,
    TopicImage,
)
from barnabas_broker.controller.careful_election import EndsAnswer, LogEnd
from barnabas_broker.controller.offline_replicas import Answered, StorageAnswer
from barnabas_broker.controller.target_state import Sender, TargetState, orders
from barnabas_broker.server.peers import controller_channel_manager
from barnabas_broker.server.peers.controller_channel_manager import (
    ControllerChannelManager,
    Ended,
    storage_answers,
)
from barnabas_broker.server.peers.peers import Peers
from barnabas_broker.server.process.supervised_tasks import background
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol import codec, registry
from barnabas_kafka.protocol.headers import decode_request_header, encode_response_header
from barnabas_kafka.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas_kafka.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from barnabas_kafka.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas_kafka.protocol.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaResponse,
)
from barnabas_kafka.protocol.messages.update_metadata import UpdateMetadataResponse
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.protocol.schema import Response
from tests.broker.server.peers.test_peers import against, respond
from tests.waiting import ANSWER, seconds, wait_for_async


def _end(
    offset: int = -1, leader_epoch: int = -1, error: ErrorCode = ErrorCode.NONE
) -> ListOffsetsResponse:
    partition = ListOffsetsPartitionResponse(
        partition_index=0, error_code=error, offset=offset, leader_epoch=leader_epoch
    )
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[partition])])


T0 = TopicPartition("t", 0)
VERSIONS = {
    ApiKey.LEADER_AND_ISR: 2,
    ApiKey.UPDATE_METADATA: 5,
    ApiKey.STOP_REPLICA: 3,
    ApiKey.LIST_OFFSETS: 5,
}
STOPPED = StopReplicaPartitionError(topic_name="bad", error_code=ErrorCode.KAFKA_STORAGE_ERROR)
ANSWERS: dict[int, Response] = {
    ApiKey.LEADER_AND_ISR: LeaderAndIsrResponse(),
    ApiKey.UPDATE_METADATA: UpdateMetadataResponse(),
    ApiKey.STOP_REPLICA: StopReplicaResponse(partition_errors=[STOPPED]),
    ApiKey.LIST_OFFSETS: _end(offset=7, leader_epoch=3),
}
STATE = PartitionState((7, 1), (7, 1), leader=7, leader_epoch=0, controller_epoch=1)
TOPIC = TopicImage("t", UUID(int=5), (STATE,))
BROKERS = {
    number: BrokerRegistration(number, (Endpoint("PLAINTEXT", "h", number),)) for number in (1, 7)
}
VIEW = TargetState(MetadataImage(cluster_id="c").with_changes(brokers=BROKERS, put=(TOPIC,)))


class Receiver:
    """A broker that obeys; `hang_up` of its first requests end the connection instead."""

    def __init__(self, hang_up: int = 0) -> None:
        self.requests: asyncio.Queue[ApiKey] = asyncio.Queue()
        self.reports: asyncio.Queue[tuple[int, TargetState, frozenset[str]]] = asyncio.Queue()
        self.stopped: list[tuple[TopicPartition, bool]] = []
        self.answers: asyncio.Queue[tuple[int, Answered]] = asyncio.Queue()
        self.counted_out: set[TopicPartition] = set()
        self.ends: asyncio.Queue[tuple[int, int, dict[TopicPartition, EndsAnswer]]] = (
            asyncio.Queue()
        )
        #: how many questions for log ends come before the epoch they are asked in
        self.early = 0
        self.refuse_storage = 0
        #: raised instead of taking a report
        self.bugs: list[Exception] = []
        #: what the next requests of a kind are answered with as a whole
        self.codes: dict[ApiKey, list[int]] = {}
        #: who waits for the deletion of this broker's replicas
        self.late: dict[str, list[Ended]] = {}
        #: what LeaderAndIsr is answered with for the partition
        self.storage_code: int | None = None
        self._hang_up = hang_up

    @property
    def all_usable(self) -> bool:
        """Of broker 1's own replicas."""
        return not self.counted_out

    def is_counted_out(self, tp: TopicPartition) -> bool:
        """Whether broker 1 has no room for that one."""
        return tp in self.counted_out

    def log_end(self, tp: TopicPartition, leader_epoch: int) -> tuple[int, int]:
        """Of broker 1's own log; the first question comes too early."""
        if self.early:
            self.early -= 1
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)
        assert tp == T0
        return leader_epoch - 1, 9

    async def hear_ends(
        self, broker: int, broker_epoch: int, answered: Mapping[TopicPartition, EndsAnswer]
    ) -> None:
        """How far logs go."""
        await self.ends.put((broker, broker_epoch, dict(answered)))

    async def storage(self, broker: int, answered: Answered) -> None:
        """What is reported of replicas; `bugs` and `refuse_storage` of the first reports fail."""
        if self.bugs:
            raise self.bugs.pop()
        if self.refuse_storage:
            self.refuse_storage -= 1
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        await self.answers.put((broker, answered))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        while True:
            size = int.from_bytes(await reader.readexactly(4), "big")
            header, _ = decode_request_header(await reader.readexactly(size))
            key = ApiKey(header.api_key)
            if key is ApiKey.API_VERSIONS:
                known = [
                    ApiVersion(api_key=each, min_version=0, max_version=version)
                    for each, version in VERSIONS.items()
                ]
                respond(writer, header.correlation_id, ApiVersionsResponse(api_keys=known))
                continue
            await self.requests.put(key)
            if self._hang_up:
                self._hang_up -= 1
                return
            version = registry.api(key).response_header_version(VERSIONS[key])
            body = encode_response_header(header.correlation_id, version)
            answer = ANSWERS[key]
            if key is ApiKey.LIST_OFFSETS and self.early:
                self.early -= 1
                answer = _end(error=ErrorCode.UNKNOWN_LEADER_EPOCH)
            if key is ApiKey.LEADER_AND_ISR and self.storage_code is not None:
                error = LeaderAndIsrPartitionError(topic_name="t", error_code=self.storage_code)
                answer = LeaderAndIsrResponse(partition_errors=[error])
            if self.codes.get(key):
                answer = registry.api(key).response(error_code=self.codes[key].pop())
            body += codec.encode(answer, VERSIONS[key])
            writer.write(len(body).to_bytes(4, "big") + body)

    async def report(self, broker: int, view: TargetState, refused: frozenset[str]) -> None:
        """What a channel reports; `bugs` are met first."""
        if self.bugs:
            raise self.bugs.pop()
        await self.reports.put((broker, view, refused))

    def stop(self, tp: TopicPartition, delete: bool, ended: Ended) -> bool:
        """What this very broker gives up, at once but for `late` topics."""
        self.stopped.append((tp, delete))
        if tp.topic == "bad":
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        if tp.topic in self.late:
            self.late[tp.topic].append(ended)
        return tp.topic not in self.late

    def channels(self, peers: Peers) -> ControllerChannelManager:
        """Channels of broker 1."""
        return ControllerChannelManager(
            1,
            peers,
            listener="PLAINTEXT",
            timeout_s=seconds(ANSWER),
            stop=self.stop,
            report=self.report,
            storage=self.storage,
            ends=self.hear_ends,
            own=self,
        )


def test_an_unanswered_request_is_sent_again() -> None:
    """Where everybody is comes first to who knows nothing; later only what has changed."""
    receiver = Receiver(hang_up=1)

    async def scenario(peers: Peers) -> None:
        channels = receiver.channels(peers)
        assert channels.take(VIEW, 3) == {}
        first = [await receiver.requests.get() for _ in range(3)]
        assert first == [ApiKey.UPDATE_METADATA, ApiKey.UPDATE_METADATA, ApiKey.LEADER_AND_ISR]
        shrunk = replace(TOPIC, partitions=(replace(STATE, isr=(7,), partition_epoch=1),))
        channels.take(TargetState(VIEW.image.with_changes(put=(shrunk,))), 3)
        assert await receiver.requests.get() is ApiKey.UPDATE_METADATA
        await channels.close()
        assert receiver.requests.empty()

    against(receiver.serve, scenario)


@pytest.mark.parametrize(
    "key", [ApiKey.UPDATE_METADATA, ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA]
)
@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_SERVER_ERROR, 9999])
def test_a_failed_request_is_sent_again(key: ApiKey, code: int) -> None:
    """Nothing else would tell it: it would lead nothing, or know nothing, until the next change."""
    receiver = Receiver()
    receiver.codes[key] = [code, code]

    async def scenario(peers: Peers) -> None:
        channels = receiver.channels(peers)
        put = () if key is ApiKey.STOP_REPLICA else (TOPIC,)
        image = VIEW.image.with_changes(remove=frozenset({"t"})).with_changes(put=put)
        channels.take(TargetState(image, {} if put else {"t": TOPIC}), 3)
        async with asyncio.timeout(seconds(ANSWER)):
            for _ in range(3):
                while await receiver.requests.get() is not key:
                    pass
            await channels.close()
        assert not receiver.codes[key]

    against(receiver.serve, scenario)


def test_a_broker_that_refuses_for_long_does_not_fill_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told as often as before."""
    attempts = 100
    monkeypatch.setattr(controller_channel_manager, "RETRY_S", 0)
    receiver = Receiver()
    receiver.codes[ApiKey.UPDATE_METADATA] = [ErrorCode.UNKNOWN_SERVER_ERROR] * attempts

    async def scenario(peers: Peers) -> None:
        channels = receiver.channels(peers)
        channels.take(VIEW, 3)
        await wait_for_async("no more refusals", lambda: not receiver.codes[ApiKey.UPDATE_METADATA])
        await channels.close()

    against(receiver.serve, scenario)
    lines = [it.getMessage() for it in caplog.records if it.levelno == logging.WARNING]
    assert [line.split()[5] for line in lines] == [
        f"attempts={it}" for it in (1, 2, 4, 8, 16, 32, 64)
    ]


def test_a_stale_controller_epoch_ends_the_retries() -> None:
    """It is not the controller any more, and is about to hear of it."""
    receiver = Receiver()
    receiver.codes[ApiKey.LEADER_AND_ISR] = [ErrorCode.STALE_CONTROLLER_EPOCH]

    async def scenario(peers: Peers) -> None:
        channels = receiver.channels(peers)
        channels.take(VIEW, 3)
        while await receiver.requests.get() is not ApiKey.LEADER_AND_ISR:
            pass
        await channels.close()
        assert receiver.requests.empty()

    against(receiver.serve, scenario)


def test_old_brokers_get_an_unclean_leader_as_any_other() -> None:
    """As of any other: their LeaderAndIsr has no word for it."""
    receiver = Receiver()

    async def scenario(peers: Peers) -> None:
        channels = receiver.channels(peers)
        topic = replace(TOPIC, partitions=(replace(STATE, recovering=True),))
        channels.take(TargetState(VIEW.image.with_changes(put=(topic,))), 3)
        first = [await receiver.requests.get() for _ in range(2)]
        assert first == [ApiKey.UPDATE_METADATA, ApiKey.LEADER_AND_ISR]
        await channels.close()

    against(receiver.serve, scenario)


def test_deletions_are_reported_with_what_was_refused() -> None:
    """This broker's own are done at once, and its failures told."""
    receiver = Receiver()

    async def scenario(peers: Peers) -> None:
        channels = receiver.channels(peers)
        deleting = {name: replace(TOPIC, name=name) for name in ("t", "bad")}
        view = TargetState(VIEW.image.with_changes(remove=frozenset({"t"})), deleting)
        assert list(channels.take(view, 3)) == ["bad"]
        assert sorted(receiver.stopped) == [(("bad", 0), True), (("t", 0), True)]
        assert await receiver.reports.get() == (7, view, frozenset({"bad"}))
        await channels.close()

    against(receiver.serve, scenario)


def test_own_deletions_are_reported_when_the_last_replica_is_gone() -> None:
    """Those behind a truncation: a failure of one is tried again, and reported then."""
    receiver = Receiver()
    receiver.late["t"] = []

    async def scenario(peers: Peers) -> None:
        channels = receiver.channels(peers)
        two = replace(TOPIC, partitions=(STATE, STATE))
        deleting = {"t": two, "bad": replace(TOPIC, name="bad")}
        image = VIEW.image.with_changes(brokers={1: VIEW.image.brokers[1]}, remove=frozenset({"t"}))
        view = TargetState(image, deleting)
        assert sorted(channels.take(view, 3)) == ["bad", "t"]
        first, second = receiver.late["t"]
        first(None)
        second(OSError("no rename"))
        assert receiver.reports.empty()
        second(None)
        assert await receiver.reports.get() == (1, view, frozenset({"bad"}))
        second(None)
        channels.take(None, 3)
        await channels.close()
        assert receiver.reports.empty()

    against(receiver.serve, scenario)


@pytest.mark.parametrize("error", [KafkaError(ErrorCode.KAFKA_STORAGE_ERROR), ValueError("a bug")])
def test_own_deletions_are_not_reported_while_one_of_the_topic_has_failed(error: Exception) -> None:
    """The last of those behind truncations is not the last of the topic then."""
    receiver = Receiver()
    ends: list[Ended] = []

    def stop(tp: TopicPartition, delete: bool, ended: Ended) -> bool:
        if tp.partition == 0:
            raise error
        ends.append(ended)
        return False

    receiver.stop = stop  # type: ignore[method-assign]

    async def scenario(peers: Peers) -> None:
        channels = receiver.channels(peers)
        deleting = {"t": replace(TOPIC, partitions=(STATE, STATE))}
        image = VIEW.image.with_changes(brokers={1: VIEW.image.brokers[1]}, remove=frozenset({"t"}))
        assert list(channels.take(TargetState(image, deleting), 3)) == ["t"]
        ends[0](None)
        await asyncio.sleep(0)
        await channels.close()
        assert receiver.reports.empty()

    against(receiver.serve, scenario)


def test_own_deletions_do_not_wait_for_replicas_that_were_moved_away() -> None:
    """Whose logs are deleted late, too, before the topic is: no deletion of the topic failed."""
    receiver = Receiver()
    receiver.late["t"] = []

    async def scenario(peers: Peers) -> None:
        channels = receiver.channels(peers)
        alone = VIEW.image.with_changes(brokers={1: VIEW.image.brokers[1]})
        moved = replace(TOPIC, partitions=(replace(STATE, replicas=(7,), isr=(7,)), STATE))
        both = alone.with_changes(put=(replace(TOPIC, partitions=(STATE, STATE)),))
        image = both.with_changes(put=(moved,), brokers=dict(VIEW.image.brokers))
        channels.take(TargetState(both), 3)
        assert channels.take(TargetState(image), 3) == {}
        view = TargetState(alone.with_changes(remove=frozenset({"t"})), {"t": moved})
        assert list(channels.take(view, 3)) == ["t"]
        away, deleted = receiver.late["t"]
        deleted(None)
        assert await receiver.reports.get() == (1, view, frozenset())
        away(None)
        await channels.close()

    against(receiver.serve, scenario)


def test_a_broker_that_fails_to_obey_one_request_is_sent_the_others() -> None:
    """It may fail for ever at a partition, and is to know of all others and to delete topics."""
    receiver = Receiver()
    receiver.codes[ApiKey.LEADER_AND_ISR] = [ErrorCode.UNKNOWN_SERVER_ERROR] * 100

    async def scenario(peers: Peers) -> None:
        channels = receiver.channels(peers)
        channels.take(TargetState(VIEW.image, {"u": replace(TOPIC, name="u")}), 3)
        async with asyncio.timeout(seconds(ANSWER)):
            while await receiver.requests.get() is not ApiKey.LEADER_AND_ISR:
                pass
            assert await receiver.requests.get() is ApiKey.STOP_REPLICA
        assert receiver.reports.empty()
        receiver.codes.clear()
        assert (await receiver.reports.get())[0] == 7
        await channels.close()

    against(receiver.serve, scenario)


def test_a_channel_survives_an_unexpected_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A bug is logged with its traceback, and the broker is told of the next change."""
    monkeypatch.setattr(controller_channel_manager, "RETRY_S", 0.0)
    receiver = Receiver()
    receiver.bugs.append(ValueError("a bug"))

    async def scenario(peers: Peers) -> None:
        channels = receiver.channels(peers)
        view = TargetState(VIEW.image.with_changes(remove=frozenset({"t"})), {"t": TOPIC})
        channels.take(view, 3)
        while await receiver.requests.get() is not ApiKey.STOP_REPLICA:
            pass
        channels.take(VIEW, 3)
        while await receiver.requests.get() is not ApiKey.LEADER_AND_ISR:
            pass
        await channels.close()

    against(receiver.serve, scenario)
    assert "Task failed: control channel to broker 7; restart in" in caplog.text
    assert "ValueError: a bug" in caplog.text


def test_each_task_survives_what_it_meets() -> None:
    """The channel, and what tells of this broker's own replicas: what each waits for fails."""
    receiver = Receiver()

    async def scenario(peers: Peers) -> None:
        async def kill(kind: str) -> None:
            (task,) = [one for one in background().tasks if one.get_name().startswith(kind)]
            task._fut_waiter.set_exception(ValueError("a bug"))  # type: ignore[attr-defined]
            failures = background().failures
            await wait_for_async("its end", lambda: failures[task.get_name()], until=bool)

        channels = receiver.channels(peers)
        channels.take(VIEW, 3)
        while await receiver.requests.get() is not ApiKey.LEADER_AND_ISR:
            pass
        await kill("control channel")
        receiver.refuse_storage = 1 << 30
        receiver.counted_out.add(TP)
        channels.take(asked(VIEW, 1), 3)
        while await receiver.requests.get() is not ApiKey.LEADER_AND_ISR:
            pass
        await kill("reporting own directories")
        receiver.refuse_storage = 0
        assert await receiver.answers.get() == (1, {TP: StorageAnswer(0, usable=False)})
        await channels.close()

    against(receiver.serve, scenario)


def test_a_report_that_failed_is_made_again() -> None:
    """A deletion is not finished before."""
    receiver = Receiver()
    report, failing = receiver.report, [ValueError("a bug")]

    async def failing_first(broker: int, view: TargetState, refused: frozenset[str]) -> None:
        if failing:
            raise failing.pop()
        await report(broker, view, refused)

    receiver.report = failing_first  # type: ignore[method-assign]

    async def scenario(peers: Peers) -> None:
        channels = receiver.channels(peers)
        view = TargetState(VIEW.image.with_changes(remove=frozenset({"t"})), {"t": TOPIC})
        channels.take(view, 3)
        assert await receiver.reports.get() == (7, view, frozenset({"bad"}))
        await channels.close()

    against(receiver.serve, scenario)


@pytest.mark.parametrize("error", [KafkaError(ErrorCode.KAFKA_STORAGE_ERROR), ValueError("a bug")])
def test_the_others_are_given_up_where_one_cannot_be(error: Exception) -> None:
    """Whatever it meets."""
    receiver = Receiver()
    given_up = []

    def stop(tp: TopicPartition, delete: bool, ended: Ended) -> bool:
        assert delete
        given_up.append(tp.topic)
        if len(given_up) == 1:
            raise error
        return True

    receiver.stop = stop  # type: ignore[method-assign]

    async def scenario(peers: Peers) -> None:
        channels = receiver.channels(peers)
        deleting = {name: replace(TOPIC, name=name) for name in ("a", "b")}
        view = TargetState(VIEW.image.with_changes(remove=frozenset({"t"})), deleting)
        assert list(channels.take(view, 3)) == [given_up[0]]
        assert sorted(given_up) == ["a", "b"]
        await channels.close()

    against(receiver.serve, scenario)


def test_a_resigned_controller_sends_nothing() -> None:
    """After a resignation, and after the end."""
    receiver = Receiver()

    async def scenario(peers: Peers) -> None:
        channels = receiver.channels(peers)
        channels.take(VIEW, 3)
        while await receiver.requests.get() is not ApiKey.LEADER_AND_ISR:
            pass
        channels.take(None, 4)
        channels.take(VIEW, 5)
        again = [await receiver.requests.get() for _ in range(2)]
        assert again == [ApiKey.UPDATE_METADATA, ApiKey.LEADER_AND_ISR]
        await channels.close()
        assert channels.take(VIEW, 6) == {}
        assert receiver.requests.empty()

    against(receiver.serve, scenario)


TP = TopicPartition("t", 0)


def asked(view: TargetState, times: int) -> TargetState:
    """The view in which broker 7 is asked about all its replicas once more."""
    return replace(view, asked={7: times})


def test_storage_errors_of_a_broker_are_reported() -> None:
    """While it cannot use a replica, and once more when it can; a report that fails is repeated."""
    receiver = Receiver()
    receiver.refuse_storage = 1
    receiver.storage_code = ErrorCode.KAFKA_STORAGE_ERROR

    async def scenario(peers: Peers) -> None:
        channels = receiver.channels(peers)
        channels.take(VIEW, 3)
        assert await receiver.answers.get() == (7, {TP: StorageAnswer(0, usable=False)})
        receiver.storage_code = ErrorCode.NONE
        channels.take(asked(VIEW, 1), 3)
        assert await receiver.answers.get() == (7, {TP: StorageAnswer(0, usable=True)})
        while not receiver.requests.empty():
            receiver.requests.get_nowait()
        channels.take(asked(VIEW, 2), 3)
        assert await receiver.requests.get() is ApiKey.LEADER_AND_ISR
        await channels.close()
        assert receiver.answers.empty()

    against(receiver.serve, scenario)


def test_an_unknown_error_code_does_not_end_the_channel() -> None:
    """A broker of a later release is told of what comes next all the same."""
    receiver = Receiver()
    receiver.storage_code = 9999

    async def scenario(peers: Peers) -> None:
        channels = receiver.channels(peers)
        async with asyncio.timeout(60):
            for times in range(2):
                channels.take(asked(VIEW, times), 3)
                while await receiver.requests.get() is not ApiKey.LEADER_AND_ISR:
                    pass
        await channels.close()

    against(receiver.serve, scenario)


@pytest.mark.parametrize("bugs", [[], [ValueError("a bug")]])
def test_own_replicas_are_updated_until_the_report_succeeds(bugs: list[Exception]) -> None:
    """Nobody is asked over the network, and nothing is said twice; a failed report is repeated."""
    receiver = Receiver()
    receiver.counted_out.add(TP)
    receiver.refuse_storage = 1
    receiver.bugs += bugs
    unusable = (1, {TP: StorageAnswer(0, usable=False)})

    async def scenario(peers: Peers) -> None:
        channels = receiver.channels(peers)
        channels.take(VIEW, 3)
        assert await receiver.answers.get() == unusable
        gone = replace(STATE, isr=(7,), leader_epoch=1, offline=(1,))
        marked = TargetState(VIEW.image.with_changes(put=(replace(TOPIC, partitions=(gone,)),)))
        channels.take(marked, 3)
        receiver.counted_out.clear()
        channels.take(asked(marked, 1), 3)
        answer = await receiver.answers.get()
        while answer == unusable:  # Said before the view was taken.
            answer = await receiver.answers.get()
        assert answer == (1, {TP: StorageAnswer(1, usable=True)})
        await channels.close()

    against(receiver.serve, scenario)


def test_answers_by_topic_id_and_by_name() -> None:
    """Other errors say nothing about disks; what was not answered neither."""
    partitions = tuple(replace(STATE, leader_epoch=epoch) for epoch in (4, 5, 6, 7))
    view = TargetState(VIEW.image.with_changes(put=(replace(TOPIC, partitions=partitions),)))
    request = orders(BROKERS[7], None, view, Sender(1, 3, "PLAINTEXT")).leader_and_isr
    assert isinstance(request, LeaderAndIsrRequest)
    codes = (ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.STALE_CONTROLLER_EPOCH)
    errors = [
        LeaderAndIsrPartitionError(topic_name="t", partition_index=number, error_code=code)
        for number, code in enumerate(codes)
    ]
    expected = {
        TP: StorageAnswer(4, usable=True),
        TopicPartition("t", 1): StorageAnswer(5, usable=False),
    }
    by_name = LeaderAndIsrResponse(partition_errors=errors)
    assert storage_answers(request, by_name) == expected
    by_id = LeaderAndIsrTopicError(topic_id=TOPIC.id, partition_errors=errors)
    unknown = LeaderAndIsrTopicError(topic_id=UUID(int=9), partition_errors=errors)
    assert storage_answers(request, LeaderAndIsrResponse(topics=[by_id, unknown])) == expected


def test_log_ends_are_requested_until_answered() -> None:
    """After it was told of the epoch; this very broker without a request."""
    receiver = Receiver()

    async def scenario(peers: Peers) -> None:
        channels = receiver.channels(peers)
        unled = replace(STATE, leader=-1, leader_epoch=4)
        image = VIEW.image.with_changes(put=(replace(TOPIC, partitions=(unled,)),))
        receiver.early = 2
        channels.take(TargetState(image, awaited_log_ends={T0: frozenset({7})}), 3)
        requests = [await receiver.requests.get() for _ in range(5)]
        assert requests[:2] == [ApiKey.UPDATE_METADATA, ApiKey.LEADER_AND_ISR]
        assert set(requests[2:]) == {ApiKey.LIST_OFFSETS}
        answers = [await receiver.ends.get() for _ in range(3)]
        assert answers == [(7, -1, {}), (7, -1, {}), (7, -1, {T0: EndsAnswer(4, LogEnd(3, 7))})]
        channels.take(TargetState(image), 3)
        channels.take(TargetState(image, awaited_log_ends={T0: frozenset({1})}), 3)
        receiver.early = 1
        own: list[object] = []
        while len(own) < 2:
            broker, epoch, answered = await receiver.ends.get()
            if broker == 1:
                own.append((epoch, answered))
        assert own == [(-1, {}), (-1, {T0: EndsAnswer(4, LogEnd(3, 9))})]
        channels.take(TargetState(image), 3)
        await channels.close()

    against(receiver.serve, scenario)
