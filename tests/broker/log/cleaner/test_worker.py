"""The cleaner process by itself."""

import os
import subprocess
import sys
from pathlib import Path

from barnabas_broker.log.cleaner import job, worker
from barnabas_broker.log.cleaner.job import Failed, Finished, GroupReady, Message, Trouble
from barnabas_broker.log.cleaner.manager import CleanerManager
from barnabas_broker.log.cleaner.throttle import Throttle
from tests.broker.log.cleaner.histories import PLENTY, open_compacted, write
from tests.broker.log.samples import NOW
from tests.waiting import RUN, seconds


def run(given_job: job.Job, parent: int) -> tuple[list[Message], str]:
    """What the process answers to a job, and what it says to people."""
    done = subprocess.run(
        [sys.executable, "-m", worker.__name__, str(parent)],
        input=job.encode(given_job),
        capture_output=True,
        timeout=seconds(RUN),
        check=False,
    )
    return [job.decode(line) for line in done.stdout.splitlines()], done.stderr.decode()


def a_job(tmp_path: Path) -> job.Job:
    logs, log = open_compacted(tmp_path)
    for number in range(12):
        write(log, (b"key", b"v%d" % number), (b"other", b"x" * 30))
    task = CleanerManager(logs).pick(NOW, PLENTY)
    assert task is not None
    return task.job


def test_a_job_done(tmp_path: Path) -> None:
    """Every group is announced with its files complete, and the end is told."""
    given_job = a_job(tmp_path)
    answers, _ = run(given_job, os.getpid())
    *ready, finished = answers
    assert all(isinstance(one, GroupReady) for one in ready)
    bases = [base for one in ready if isinstance(one, GroupReady) for base in one.replaced]
    assert bases == given_job.segments[:-1]
    assert isinstance(finished, Finished)
    assert finished.clean_to == given_job.first_uncleanable
    for one in ready:
        assert isinstance(one, GroupReady)
        assert Path(given_job.directory, f"{one.replaced[0]:020d}.log.cleaned").exists()


def test_a_damaged_log(tmp_path: Path) -> None:
    """The process says where the bytes are that are no batch, and ends in order."""
    given_job = a_job(tmp_path)
    path = Path(given_job.directory, f"{given_job.segments[1]:020d}.log")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    answers, _ = run(given_job, os.getpid())
    assert isinstance(answers[-1], Failed)
    assert answers[-1].trouble is Trouble.CORRUPT
    assert "CRC" in answers[-1].reason


def test_a_torn_segment(tmp_path: Path) -> None:
    """Half a batch at the end of a closed segment is damage: what it was is not lost silently."""
    given_job = a_job(tmp_path)
    path = Path(given_job.directory, f"{given_job.segments[0]:020d}.log")
    os.truncate(path, path.stat().st_size - 3)
    answers, _ = run(given_job, os.getpid())
    assert isinstance(answers[-1], Failed)
    assert "no whole batch" in answers[-1].reason


def test_a_vanished_segment(tmp_path: Path) -> None:
    """A topic that is deleted meanwhile is no damage."""
    given_job = a_job(tmp_path)
    Path(given_job.directory, f"{given_job.segments[0]:020d}.log").unlink()
    answers, _ = run(given_job, os.getpid())
    assert answers == [
        Failed(
            trouble=Trouble.IO,
            reason=f"No such file or directory ({given_job.directory}/{0:020d}.log)",
            errno=2,
        )
    ]


def test_it_does_not_outlive_its_broker(tmp_path: Path) -> None:
    """Started by a broker that has gone already, it touches nothing."""
    given_job = a_job(tmp_path)
    answers, said = run(given_job, os.getpid() + 1)
    assert answers == []
    assert "gone already" in said
    assert not list(Path(given_job.directory).glob("*.cleaned"))


def test_other_orders() -> None:
    """Whatever is no job is refused."""
    process = subprocess.run(
        [sys.executable, "-m", worker.__name__, str(os.getpid())],
        input=job.encode(GroupReady(replaced=[])),
        capture_output=True,
        timeout=seconds(RUN),
        check=False,
    )
    assert process.returncode == 1
    assert b"GroupReady is no job" in process.stderr


def test_pauses_make_up_for_haste() -> None:
    """On average the rate is kept; time spent otherwise counts."""
    throttle = Throttle(100, now=5.0)
    assert throttle.pause_s(50, 5.0) == 0.5
    assert throttle.pause_s(50, 5.5) == 0.5
    assert throttle.pause_s(100, 9.0) == 0.0


def test_no_limit() -> None:
    """The default rate is so large that nothing ever waits."""
    assert Throttle(1.8e308, now=0.0).pause_s(1 << 40, 0.0) == 0.0
