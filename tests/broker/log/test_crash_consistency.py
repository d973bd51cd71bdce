"""A stop at every single point of a log's life, by a kill and by a power cut."""

from __future__ import annotations

import logging
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.log.disk import Disk, using
from tests.broker.log.history import Scenario, play
from tests.broker.log.images import Loss, Machine, Tree

POWER: list[Loss] = [loss for loss in Loss if loss is not Loss.KILL]


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    """Thousands of recoveries have much to say."""
    logger = logging.getLogger("barnabas_broker.log")
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(logging.NOTSET)


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """The life of one directory, played once."""
    root = tmp_path_factory.mktemp("life")
    with using(Disk(root)) as disk:
        return play(disk, root / "data")


def stops(scenario: Scenario, *, share: float = 1, seed: int = 0) -> Iterator[tuple[int, Machine]]:
    """The machine after each effect of the scenario, or after a share of them picked by seed."""
    machine = Machine()
    picks = random.Random(seed)
    first = scenario.moments[0].position
    for position, effect in enumerate(scenario.disk.effects, start=1):
        machine.apply(effect)
        if position >= first and picks.random() < share:
            yield position, machine


def check(scenario: Scenario, position: int, tree: Tree, directory: Path, label: str) -> None:
    """Recover from ``tree``; says on failure which stop it was."""
    data = tree.get("data", {})
    assert isinstance(data, dict)
    try:
        scenario.check(position, data, directory, power=not label.startswith("KILL"))
    except BaseException as error:
        effect = scenario.disk.effects[position - 1]
        step = scenario.moments[scenario.around(position)[1]].name
        error.add_note(f"{label}, after effect {position} ({effect}) in step {step!r}")
        raise
    shutil.rmtree(directory)


def test_a_kill_anywhere_loses_nothing(scenario: Scenario, tmp_path: Path) -> None:
    """Whatever an append returned for is there, with every file in whatever state it was."""
    for position, machine in stops(scenario):
        if scenario.disk.effects[position - 1].kind != "sync":
            check(scenario, position, machine.image(Loss.KILL), tmp_path / "data", "KILL")


@pytest.mark.parametrize("loss", POWER, ids=lambda loss: loss.name)
def test_a_power_cut_loses_nothing_flushed(scenario: Scenario, tmp_path: Path, loss: Loss) -> None:
    """Names as strict as POSIX allows, or as a journal keeps them, to a point picked by seed."""
    picks = random.Random(1)
    for position, machine in stops(scenario, share=0.1, seed=POWER.index(loss)):
        pending = machine.pending_names
        names = picks.choice([None, 0, pending, picks.randint(0, pending)])
        tree = machine.image(loss, names)
        check(scenario, position, tree, tmp_path / "data", f"{loss.name} with names {names}")


def cut_unevenly(scenario: Scenario, directory: Path, *, share: float, seed: int) -> None:
    """Power cuts in which each file is treated in its own way, picked by seed."""
    for position, machine in stops(scenario, share=share, seed=seed):
        for names in {None, machine.pending_names}:
            picks = random.Random(f"{seed} {position}")
            fates = {node: picks.choice(list(Loss)) for node in range(scenario.disk.nodes)}
            tree = machine.image(fates.__getitem__, names)
            check(scenario, position, tree, directory, f"seed {seed} with names {names}")


def test_the_kernel_may_write_back_one_file_and_not_another(
    scenario: Scenario, tmp_path: Path
) -> None:
    """A later segment may be there and an earlier not; that makes no hole in the log."""
    cut_unevenly(scenario, tmp_path / "data", share=0.1, seed=5)


@pytest.mark.soak
def test_a_power_cut_anywhere(scenario: Scenario, tmp_path: Path) -> None:
    """Every point, every loss, and every prefix of the changes of names."""
    for position, machine in stops(scenario):
        for loss in POWER:
            for names in (None, *range(machine.pending_names + 1)):
                tree = machine.image(loss, names)
                check(
                    scenario, position, tree, tmp_path / "data", f"{loss.name} with names {names}"
                )
    for seed in range(20):
        cut_unevenly(scenario, tmp_path / "data", share=1, seed=seed)
