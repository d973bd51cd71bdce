"""The controller's thread beside an event loop: order, failures, and what others write."""

import asyncio
import threading
import weakref
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.controller.commands import Failures
from barnabas_broker.controller.controller import Controller
from barnabas_broker.controller.requests import CreatedTopic
from barnabas_broker.controller.target_state import TargetState
from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.security.principals import ANONYMOUS
from barnabas_broker.server.control import controller_thread
from barnabas_broker.server.control.controller_thread import LEFT_MAX, ControllerThread
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.zk.store import CoordinationError, Create, Delete
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
)
from barnabas_kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas_kafka.protocol.schema import Message
from tests.broker.controller.embedded import NOW_MS, Embedded
from tests.broker.server.running import Wire, port_of, running_node
from tests.waiting import ANSWER, seconds, wait_for, wait_for_async

OLD_TOPIC = b'{"version":1,"partitions":{"0":[1]}}'
TAKEN = Create("/controller", b'{"version":2,"brokerid":7,"timestamp":"1"}', ephemeral_owner=99)


@pytest.fixture
def embedded(tmp_path: Path) -> Embedded:
    """A controller without topics."""
    return Embedded(tmp_path)


@asynccontextmanager
async def beside(embedded: Embedded) -> AsyncIterator[ControllerThread]:
    """Its thread, beside the running loop."""
    thread = ControllerThread(
        embedded.controller, loop=asyncio.get_running_loop(), clock_ms=lambda: NOW_MS
    )
    yield thread
    await thread.stop()


def each_fails(failures: Failures) -> Work[Failures]:
    """An image of which some topics cannot be applied."""
    yield
    return failures


def create(name: str, controller: Controller) -> CreatedTopic:
    """A request that changes the image."""
    new = [NewTopic(name=name)]
    return controller.create_topics(new, principal=ANONYMOUS, now_ms=NOW_MS)[0]


def test_an_answer_comes_after_its_image(embedded: Embedded) -> None:
    """When a creation is answered the loop knows the topic, and the replicas have made its logs."""

    async def scenario() -> None:
        async with beside(embedded) as thread:
            seen: list[tuple[int, list[str]]] = []

            def on_image(_old: MetadataImage, new: MetadataImage) -> Work[Failures]:
                seen.append((threading.get_ident(), list(new.topics)))
                yield
                return {}

            thread.attach(on_image)
            known = await thread.ask(
                lambda controller: create("t", controller), lambda _: list(thread.image.topics)
            )
            assert known == ["t"]
            assert seen == [(threading.get_ident(), ["t"])]

    asyncio.run(scenario())


def test_the_loop_goes_on_while_an_image_is_applied(embedded: Embedded) -> None:
    """Thousands of logs take seconds to create: requests and heartbeats do not wait for all."""

    async def scenario() -> None:
        async with beside(embedded) as thread:
            served: list[int] = []

            def on_image(_old: MetadataImage, new: MetadataImage) -> Work[Failures]:
                for number in range(3):
                    asyncio.get_running_loop().call_soon(served.append, number)
                    while number not in served:
                        yield
                applied.append(set(new.topics))
                return {}

            applied: list[set[str]] = []
            thread.attach(on_image)
            both = [thread.run(partial(create, name)) for name in ("t", "u")]
            await asyncio.gather(*both)
            assert applied == [{"t"}, {"t", "u"}], "one image after the other"

    asyncio.run(scenario())


def test_work_is_done_in_order_off_the_loop(embedded: Embedded) -> None:
    """One thread, which is not the loop's."""

    async def scenario() -> None:
        async with beside(embedded) as thread:
            order: list[int] = []
            done = [thread.run(lambda _, n=n: order.append(n)) for n in range(20)]  # type: ignore[misc]
            ident = await thread.run(lambda _: threading.get_ident())
            assert ident != threading.get_ident()
            assert all(each.done() for each in done)
            assert order == list(range(20))

    asyncio.run(scenario())


def test_clients_wait_for_the_cluster_and_in_turns(embedded: Embedded) -> None:
    """What the cluster causes waits for one request of a client at most, and so does a client."""

    async def scenario() -> None:
        async with beside(embedded) as thread:
            order: list[str] = []
            begun, go_on = threading.Event(), threading.Event()

            def first(_: Controller) -> None:
                begun.set()
                assert go_on.wait(seconds(ANSWER))
                order.append("large 0")

            def ask(name: str, number: int) -> asyncio.Future[None]:
                def work(_: Controller) -> None:
                    order.append(f"{name} {number}")

                return thread.ask_for_client(work, lambda result: result, client=name)

            asked = [thread.ask_for_client(first, lambda result: result, client="large")]
            await asyncio.to_thread(begun.wait, seconds(ANSWER))
            asked += [ask("large", number) for number in (1, 2, 3)]
            asked += [ask("small", 1), thread.run(lambda _: order.append("cluster"))]
            go_on.set()
            await asyncio.gather(*asked)
            assert order == ["large 0", "cluster", "small 1", "large 1", "large 2", "large 3"]

    asyncio.run(scenario())


def test_requests_of_clients_that_have_left_are_not_kept(embedded: Embedded) -> None:
    """While ZooKeeper is away clients time out and ask again; nothing holds what they had asked."""

    async def scenario() -> None:
        async with beside(embedded) as thread:
            order: list[int] = []
            begun, go_on = threading.Event(), threading.Event()

            def first(_: Controller) -> bool:
                begun.set()
                return go_on.wait(seconds(ANSWER))

            def ask(number: int) -> asyncio.Future[None]:
                request = _Request()
                requests.add(request)

                def work(_: Controller) -> None:
                    assert request
                    order.append(number)

                return thread.ask_for_client(work, lambda result: result, client="client")

            requests: weakref.WeakSet[_Request] = weakref.WeakSet()
            asked: list[asyncio.Future[Any]] = [
                thread.ask_for_client(first, lambda result: result, client="client")
            ]
            await asyncio.to_thread(begun.wait, seconds(ANSWER))
            for number in range(2_000):
                ask(number).cancel()
                await asyncio.sleep(0)
            asked.append(ask(7))
            assert len(requests) == 1
            assert len(thread._of_clients) <= 2 * LEFT_MAX
            go_on.set()
            await asyncio.gather(*asked)
            assert order == [7]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (CreateTopicsRequest(topics=[CreatableTopic(name="t")]), 5),
        (AlterUserScramCredentialsRequest(), 0),
    ],
)
def test_a_request_is_dropped_with_its_connection(
    tmp_path: Path, request_: Message, version: int
) -> None:
    """A client that leaves before its turn is waited for no more, whatever it had asked."""
    with running_node(tmp_path) as node:
        thread = node.broker.controller
        begun, go_on = threading.Event(), threading.Event()

        def first(_: Controller) -> bool:
            begun.set()
            return go_on.wait(seconds(ANSWER))

        thread._loop.call_soon_threadsafe(
            lambda: thread.ask_for_client(first, lambda result: result, client="another")
        )
        assert begun.wait(seconds(ANSWER))
        with Wire(port_of(node)) as wire:
            wire.send(request_, version)
            wait_for("a request that waits", lambda: len(thread._of_clients))
        queue = thread._of_clients
        wait_for("nothing to do", lambda: all(each.work is None for *_, each in queue._heap))
        go_on.set()


class _Request:
    """Something that takes memory."""


def test_clients_that_wait_when_the_thread_ends_are_refused(embedded: Embedded) -> None:
    """What is at work is finished; each of the others gets an answer, too."""

    async def scenario() -> list[object]:
        async with beside(embedded) as thread:
            begun, stopped = threading.Event(), threading.Event()

            def work(_: Controller) -> bool:
                begun.set()
                return stopped.wait(seconds(ANSWER))

            asked = [
                thread.ask_for_client(work, lambda result: result, client="a") for _ in range(3)
            ]
            await asyncio.to_thread(begun.wait, seconds(ANSWER))
            thread._thread.shutdown(wait=False)
            stopped.set()
            return await asyncio.gather(*asked, return_exceptions=True)

    done = asyncio.run(scenario())
    assert done[0] is True
    assert [each.code for each in done[1:] if isinstance(each, KafkaError)] == [
        ErrorCode.NOT_CONTROLLER
    ] * 2


def test_a_topic_without_logs_is_not_created(embedded: Embedded) -> None:
    """The disk's error is the answer, and the name is free for another try."""

    async def scenario() -> None:
        async with beside(embedded) as thread:
            full = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "disk full")
            thread.attach(lambda _old, new: each_fails({"t": full} if "t" in new.topics else {}))
            refused = await thread.run(lambda controller: create("t", controller))
            assert (refused.outcome.error, refused.outcome.message) == (full.code, "disk full")
            assert list(thread.image.topics) == []
            thread.attach(lambda _old, _new: each_fails({}))
            assert (await thread.run(lambda controller: create("t", controller))).outcome.granted

    asyncio.run(scenario())


def test_an_error_reaches_the_caller(embedded: Embedded) -> None:
    """Of the work, and of making the answer; the thread goes on."""

    async def scenario() -> None:
        async with beside(embedded) as thread:
            with pytest.raises(ZeroDivisionError):
                await thread.ask(lambda _: 1 // 0, lambda result: result)
            with pytest.raises(ZeroDivisionError):
                await thread.ask(lambda _: 0, lambda result: 1 // result)
            assert await thread.run(lambda _: "alive") == "alive"

    asyncio.run(scenario())


def test_a_znode_change_is_handled(embedded: Embedded) -> None:
    """A path that somebody wrote to, from whatever thread tells of it."""

    async def scenario() -> None:
        async with beside(embedded) as thread:
            embedded.store.commit([Create("/brokers/topics/t", OLD_TOPIC)], now_ms=NOW_MS)
            await asyncio.to_thread(thread.on_znode_change, "/brokers/topics")
            await thread.run(lambda _: None)
            assert list(thread.image.topics) == ["t"]

    asyncio.run(scenario())


def test_a_write_that_failed_has_everything_read_again(embedded: Embedded) -> None:
    """Somebody made the topic first: that is the answer, and the loop learns of the topic."""

    async def scenario() -> None:
        async with beside(embedded) as thread:
            embedded.store.commit([Create("/brokers/topics/t", OLD_TOPIC)], now_ms=NOW_MS)
            refused = await thread.run(lambda controller: create("t", controller))
            assert refused.outcome.error == ErrorCode.TOPIC_ALREADY_EXISTS
            await thread.run(lambda _: None)
            assert list(thread.image.topics) == ["t"]

    asyncio.run(scenario())


def test_a_failed_read_is_retried_without_end(
    embedded: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what no code expects; what was heard meanwhile is not forgotten."""
    failures = [
        ValueError("unexpected"),
        CoordinationError("no answer"),
        *(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) for _ in range(20)),
    ]
    catch_up = embedded.controller.catch_up

    def fail_first(paths: Collection[str] | None, *, now_ms: int) -> None:
        if failures:
            raise failures.pop(0)
        catch_up(paths, now_ms=now_ms)

    monkeypatch.setattr(controller_thread, "RETRY_LONGEST_S", 0.01)
    monkeypatch.setattr(embedded.controller, "catch_up", fail_first)

    async def scenario() -> None:
        async with beside(embedded) as thread:
            embedded.store.commit([Create("/brokers/topics/t", OLD_TOPIC)], now_ms=NOW_MS)
            thread.on_znode_change("/brokers/topics")
            await wait_for_async("topic t in the image", lambda: "t" in thread.image.topics)
            assert failures == []

    asyncio.run(scenario())


def test_elections_that_stay_refused_do_not_delay_what_is_to_be_read(
    embedded: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are tried ever less often; what failed to be read is read again soon."""
    catch_up, failures = embedded.controller.catch_up, [CoordinationError("no answer")]

    def fail_first(paths: Collection[str] | None, *, now_ms: int) -> None:
        if failures:
            raise failures.pop()
        catch_up(paths, now_ms=now_ms)

    monkeypatch.setattr(type(embedded.controller), "unsettled", property(lambda _: True))
    monkeypatch.setattr(embedded.controller, "catch_up", fail_first)

    async def scenario() -> None:
        async with beside(embedded) as thread:
            with monkeypatch.context() as patch:
                patch.setattr(controller_thread, "RETRY_FIRST_S", 3600.0)
                patch.setattr(controller_thread, "RETRY_LONGEST_S", 3600.0)
                await thread.run(lambda _: None)
                await asyncio.sleep(0)
            embedded.store.commit([Create("/brokers/topics/t", OLD_TOPIC)], now_ms=NOW_MS)
            thread.on_znode_change("/brokers/topics")
            await wait_for_async("topic t in the image", lambda: "t" in thread.image.topics)

    asyncio.run(scenario())


def test_another_controller_is_made_way_for(embedded: Embedded) -> None:
    """What it would decide is refused from then on, and the image stays."""

    async def scenario() -> None:
        async with beside(embedded) as thread:
            embedded.store.commit([Delete("/controller"), TAKEN], now_ms=NOW_MS)
            thread.on_znode_change("/controller")
            refused = await thread.run(lambda controller: create("t", controller))
            assert refused.outcome.error == ErrorCode.NOT_CONTROLLER

    asyncio.run(scenario())


def test_a_local_failure_does_not_hold_back_leader_and_isr(embedded: Embedded) -> None:
    """An error of the own replicas holds back no LeaderAndIsr to other brokers."""

    def failing(_old: MetadataImage, _new: MetadataImage) -> Work[Failures]:
        yield
        raise ZeroDivisionError

    async def scenario() -> None:
        async with beside(embedded) as thread:
            reported: list[int] = []

            def on_view(_view: TargetState | None, epoch: int) -> dict[str, KafkaError]:
                reported.append(epoch)
                return {}

            thread.attach(failing, on_view)
            with pytest.raises(ZeroDivisionError):
                await thread.run(lambda controller: create("t", controller))
            assert reported

    loop_errors: list[object] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, it: loop_errors.append(it))
        await scenario()

    asyncio.run(main())
    assert loop_errors
