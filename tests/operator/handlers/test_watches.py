"""Events: which ask for a pass."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from barnabas_operator.handlers.watches import (
    GenerationFilter,
    Served,
    log_in,
    register,
    settings,
    watch,
)
from barnabas_operator.kube import CLUSTERS, PODS, STATEFUL_SETS, Kind, KubeError
from barnabas_operator.names import APPROVE_ROLL
from barnabas_operator.reconcile.reconciler import OWNED, Key
from tests.operator.api_server import Server, kubeconfig, serving
from tests.operator.memory_kube import MemoryKube
from tests.waiting import ANSWER, START, seconds


def _event(kind: str, *, generation: int = 1, leaving: bool = False) -> dict[str, Any]:
    meta: dict[str, Any] = {"uid": "u", "generation": generation}
    if leaving:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"type": kind, "object": {"metadata": meta}}


def test_our_own_status_is_no_news() -> None:
    """Otherwise every status would be followed by a pass, and that by a status."""
    generations = GenerationFilter()
    assert generations.is_new(_event("ADDED"))
    assert not generations.is_new(_event("MODIFIED"))
    assert generations.is_new(_event("MODIFIED", generation=2))
    assert generations.is_new(_event("MODIFIED", generation=2, leaving=True))
    assert generations.is_new(_event("DELETED", generation=2))
    assert generations.is_new(_event("ADDED", generation=2))


def test_an_annotation_of_ours_is_news() -> None:
    """An approval, or an answer about an existing topic: neither makes another generation."""
    generations = GenerationFilter()
    assert generations.is_new(_event("ADDED"))
    approved, noted = _event("MODIFIED"), _event("MODIFIED")
    approved["object"]["metadata"]["annotations"] = {APPROVE_ROLL: "token"}
    noted["object"]["metadata"]["annotations"] = {"example.org/note": "x"}
    assert not generations.is_new(noted)
    assert generations.is_new(approved)
    assert not generations.is_new(approved)


def test_more_of_a_spec_is_news() -> None:
    """A newer definition shows fields that were stored before, without another generation."""
    generations = GenerationFilter()
    assert generations.is_new(_event("ADDED"))
    more = _event("MODIFIED")
    more["object"]["spec"] = {"tier": "cold"}
    assert generations.is_new(more)
    assert not generations.is_new(more)


@pytest.mark.parametrize("kind", OWNED, ids=lambda kind: kind.kind)
def test_events_of_pods_and_statefulsets_trigger_a_reconciliation(kind: Kind) -> None:
    """A cluster that waits for long has its next pass late: what it waits for may be a pod."""
    asked: list[Key] = []
    observed: list[Kind] = []
    registry = register(lambda key, **_: asked.append(key), lambda found, _: observed.append(found))
    handlers = [
        each
        for each in registry._watching.get_all_handlers()
        if each.selector is not None and each.selector.any_name == kind.plural
    ]
    labels = {"app.kubernetes.io/instance": "quickstart"}
    meta = {"uid": "u", "namespace": "default", "name": "x", "labels": labels}
    event = {"type": "MODIFIED", "object": {"kind": kind.kind, "metadata": meta}}
    for each in handlers:
        handle: Any = each.fn
        asyncio.run(handle(event=event))
    assert observed == [kind]
    due = [Key("default", "quickstart")] if kind in (PODS, STATEFUL_SETS) else []
    assert asked == due


def test_kopf_only_watches() -> None:
    """No events posted, no scanning of namespaces, no watch that hangs for ever."""
    chosen = settings()
    assert not chosen.posting.enabled
    assert chosen.scanning.disabled
    assert chosen.watching.client_timeout is not None
    # It would kill the process ten minutes after one namespace was deleted.
    assert chosen.process.ultimate_exiting_timeout is None
    # A thread of each namespace would stay for ever.
    assert inspect.iscoroutinefunction(log_in)


def test_a_watch_that_ends_says_that_events_may_be_missed() -> None:
    """What is known of its namespace may be out of date from then on."""

    def refuse(_: str | None) -> bool:
        raise KubeError(403, "forbidden")

    served = Served(check=refuse, every_s=1.0)

    async def first_loss() -> str | None:
        lost: asyncio.Queue[str | None] = asyncio.Queue()
        starts = asyncio.Semaphore()
        watching = asyncio.create_task(
            watch(
                "ns", lambda *_, **__: None, lambda *_: None, served, lost.put_nowait, starts=starts
            )
        )
        try:
            async with asyncio.timeout(seconds(ANSWER)):
                return await lost.get()
        finally:
            watching.cancel()

    assert asyncio.run(first_loss()) == "ns"


def test_a_namespace_that_is_deleted_ends_nothing_but_its_own_watches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What else runs in the event loop goes on: passes, and the watches of other namespaces."""

    async def watched(server: Server) -> None:
        lost: asyncio.Queue[str | None] = asyncio.Queue()
        served, starts = Served(check=lambda _: True, every_s=1.0), asyncio.Semaphore(2)
        watching = [
            asyncio.create_task(
                watch(
                    each,
                    lambda *_, **__: None,
                    lambda *_: None,
                    served,
                    lost.put_nowait,
                    starts=starts,
                )
            )
            for each in ("gone", "kept")
        ]
        try:
            async with asyncio.timeout(seconds(START)):
                for _ in range(2 * (len(OWNED) + 4)):
                    await asyncio.to_thread(server.watches.acquire)
                a_pass = asyncio.create_task(asyncio.Event().wait())
                server.forbidden.add("gone")
                server.gone[CLUSTERS.plural].set()
                assert await lost.get() == "gone"
                assert not a_pass.done()
                assert lost.empty()
                a_pass.cancel()
        finally:
            for each in watching:
                each.cancel()
            await asyncio.gather(*watching, return_exceptions=True)

    with serving(MemoryKube()) as server:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig(server.address, tmp_path, "a-token")))
        asyncio.run(watched(server))


def test_a_watch_that_is_refused_ends_the_others_of_its_namespace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are all opened again: what goes on would be one more with each time, for ever."""

    async def left(server: Server) -> set[str]:
        ended: asyncio.Queue[set[str]] = asyncio.Queue()
        before = asyncio.all_tasks()

        def lost(_: str | None) -> None:
            ended.put_nowait({each.get_name() for each in asyncio.all_tasks() - others})

        served, starts = Served(check=lambda _: True, every_s=1.0), asyncio.Semaphore()
        watching = asyncio.create_task(
            watch("ns", lambda *_, **__: None, lambda *_: None, served, lost, starts=starts)
        )
        others = {*before, watching}
        try:
            async with asyncio.timeout(seconds(START)):
                for _ in range(len(OWNED) + 4):
                    await asyncio.to_thread(server.watches.acquire)
                server.absent.add(CLUSTERS.plural)
                server.gone[CLUSTERS.plural].set()
                return await ended.get()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    with serving(MemoryKube()) as server:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig(server.address, tmp_path, "a-token")))
        # asyncio.run would wait for what is left.
        with closing(asyncio.new_event_loop()) as loop:
            assert loop.run_until_complete(left(server)) == set()


def test_watches_select_owned_objects_by_label() -> None:
    """Not all pods of the namespace are sent, parsed and thrown away."""
    selectors = settings().watching.label_selectors
    for kind, selector in OWNED.items():
        assert selectors[(*kind.group_and_version, kind.plural)] == selector
