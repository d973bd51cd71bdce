"""Random lives of one log: append, flush, truncate, kill, power cut; nothing promised is lost."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from barnabas_broker.log import files
from tests.broker.log.disk import Disk
from tests.broker.log.history import SMALL, Contents, check_derived, contents_of
from tests.broker.log.images import Loss, Machine, write_tree
from tests.broker.log.samples import NOW, TP, batch_of, open_directories, validated


class LogLife(RuleBasedStateMachine):
    """The model is what was appended and how much of it was flushed."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="log-life-"))
        self.lives = 0
        self.kept: Contents = {}
        self.flushed = 0
        logging.getLogger("barnabas_broker.log").setLevel(logging.CRITICAL)

    @initialize()
    def begin(self) -> None:
        (self.root / "0").mkdir()
        self.start(self.root / "0")
        self.logs.create(TP, SMALL, None, NOW)

    def start(self, root: Path) -> None:
        self.disk = Disk(root)
        files.system = self.disk
        self.logs = open_directories(root / "data", config=SMALL)

    @rule(count=st.integers(1, 4), size=st.integers(1, 100), epoch=st.integers(0, 1))
    def append(self, count: int, size: int, epoch: int) -> None:
        log = self.logs.logs[TP]
        log.append_as_leader(
            validated(batch_of(count, size=size)),
            leader_epoch=max(log.latest_epoch, 0) + epoch,
            now_ms=NOW,
        )
        log.advance_high_watermark(log.log_end_offset)
        self.kept = contents_of(log)

    @rule()
    def flush(self) -> None:
        self.logs.logs[TP].flush(now_ms=NOW)
        self.flushed = self.logs.logs[TP].log_end_offset

    @rule()
    def checkpoint(self) -> None:
        self.logs.checkpoint()

    @rule(back=st.integers(1, 10))
    def truncate(self, back: int) -> None:
        log = self.logs.logs[TP]
        self.logs.truncate(TP, max(log.log_end_offset - back, 0), now_ms=NOW)
        self.kept = contents_of(log)
        self.flushed = min(self.flushed, log.log_end_offset)

    @rule()
    def restart(self) -> None:
        self.logs.close(now_ms=NOW)
        self.flushed = max([self.flushed, *(base + 1 for base in self.kept)])
        self.logs = open_directories(self.disk.root / "data", config=SMALL)
        assert contents_of(self.logs.logs[TP]) == self.kept

    @rule()
    def kill(self) -> None:
        self.stop(Loss.KILL, None)
        assert contents_of(self.logs.logs[TP]) == self.kept

    @rule(
        loss=st.sampled_from([loss for loss in Loss if loss is not Loss.KILL]),
        names=st.one_of(st.none(), st.integers(0, 30)),
    )
    def cut_power(self, loss: Loss, names: int | None) -> None:
        self.stop(loss, names)
        if TP not in self.logs.logs:
            assert not self.flushed
            self.logs.create(TP, SMALL, None, NOW)
        found = contents_of(self.logs.logs[TP])
        assert found.items() <= self.kept.items()
        assert list(found) == list(self.kept)[: len(found)]
        for base in self.kept:
            assert base >= self.flushed or base in found
        self.kept = found

    def stop(self, loss: Loss, names: int | None) -> None:
        machine = Machine()
        for effect in self.disk.effects:
            machine.apply(effect)
        self.logs.close(clean=False)
        self.lives += 1
        write_tree(machine.image(loss, names), self.root / str(self.lives))
        self.start(self.root / str(self.lives))

    @invariant()
    def everything_beside_the_log_follows_from_it(self) -> None:
        if hasattr(self, "logs"):
            check_derived(self.logs.logs[TP])

    def teardown(self) -> None:
        files.system = os
        if hasattr(self, "logs"):
            self.logs.close(clean=False)
        shutil.rmtree(self.root)
        logging.getLogger("barnabas_broker.log").setLevel(logging.NOTSET)


TestLogLife = LogLife.TestCase
TestLogLife.settings = settings(
    max_examples=max(settings().max_examples // 5, 20),
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
