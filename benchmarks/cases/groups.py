"""The group coordinator: rebalances of large groups, commits of many, memory of idle ones."""

from __future__ import annotations

import time
from functools import partial
from typing import Final

from benchmarks.clients import run_worker
from benchmarks.metering import memory_mib, requests_sample
from benchmarks.model import Case, Metric, Sample, Scale
from benchmarks.targets import Target
from benchmarks.topics import create, topic

# Bounds what a very fast broker writes in the seconds given.
COMMITS_MAX: Final = 100_000
GROUPS: Final = 100
# Memory is read once a broker that has worked has had time to calm down.
SETTLE_SECONDS: Final = 2.0
# The Java broker commits 5,000 a second in its first run of two seconds, 17,000 in the next two and
# 35,000 from the fourth or fifth on, when its compiler is done with that path.
COMMIT_WARM_UPS: Final = 5


def rebalances(target: Target, scale: Scale, *, members: int) -> list[Sample]:
    """A group that is there is called together again and again; nobody comes or goes."""
    row = f"rebalance of {members:,} members"
    members = scale.of(members, 10)
    spec = {"mode": "rebalance", "members": members, "rebalances": scale.of(5000 // members, 2)}
    report, meter = run_worker("groups", spec, target.broker)
    done = report["rebalances"]
    values = {
        Metric.REBALANCE: report["seconds"] * 1e3 / done,
        Metric.CPU_PER_REBALANCE: meter.cpu * 1e3 / done,
    }
    detail = meter.detail(seconds=report["seconds"], rebalances=done)
    return [Sample(row=row, values=values, detail=detail)]


def commits(target: Target, scale: Scale) -> list[Sample]:
    """Members of many groups commit one offset after the other."""
    with topic(target.broker, "committed") as name:
        spec = {
            "mode": "commit",
            "members": scale.of(GROUPS, 10),
            "topic": name,
            "requests": scale.of(COMMITS_MAX, 200),
            "seconds": scale.seconds,
        }
        report, meter = run_worker("groups", spec, target.broker)
    row = f"offset commits of {GROUPS} groups, one in flight each"
    done, seconds = report["requests"], report["seconds"]
    return [requests_sample(row, meter, requests=done, seconds=seconds)]


def memory(target: Target, scale: Scale) -> list[Sample]:
    """What a fresh broker's memory grows by with a thousand groups of one member and one offset."""
    groups = scale.of(1000, 20)
    with target.fresh() as broker:
        broker.start()
        create(broker, "bench-committed", partitions=1)
        spec = {"mode": "form", "topic": "bench-committed", "bootstrap": broker.bootstrap}
        run_worker("groups", spec | {"members": 1}, broker)
        time.sleep(SETTLE_SECONDS)
        before, _ = memory_mib(broker.pid)
        run_worker("groups", spec | {"members": groups}, broker)
        time.sleep(SETTLE_SECONDS)
        after, peak = memory_mib(broker.pid)
    values = {Metric.RSS: after - before}
    detail = {"before_mib": before, "after_mib": after, "peak_mib": peak}
    return [Sample(row="memory, growth by 1,000 groups", values=values, detail=detail)]


CASES: Final = (
    *(
        Case(
            f"rebalance-{members}",
            f"a group of {members:,} members rebalances",
            partial(rebalances, members=members),
        )
        for members in (100, 500, 1000)
    ),
    Case("commits", "offset commits of many groups", commits, warm_ups=COMMIT_WARM_UPS),
    Case("group-memory", "memory of 1,000 groups on a fresh broker", memory, fresh=True),
)
