"""The oracle starts, answers its own tools, survives a restart and cleans up after itself."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from tests.oracle.apache import ApacheKafka, OracleError, classpath, ports_of, run_tool
from tests.oracle.filling import await_leaders


@pytest.mark.parametrize(
    ("version", "topic_tool", "offset_tool"),
    [
        (
            "3.9.1",
            "org.apache.kafka.tools.TopicCommand",
            "org.apache.kafka.tools.GetOffsetShell",
        ),
        ("2.8.2", "kafka.admin.TopicCommand", "kafka.tools.GetOffsetShell"),
    ],
)
def test_broker_serves_its_own_tools_and_keeps_data_over_a_restart(
    tmp_path: Path, version: str, topic_tool: str, offset_tool: str
) -> None:
    """A topic made and filled before a stop is there after the next start, on the same address."""
    kafka = ApacheKafka(version, directory=tmp_path, heap="256M", overrides={"num.partitions": "2"})
    with kafka:
        server = ["--bootstrap-server", kafka.bootstrap]
        made = run_tool(topic_tool, *server, "--create", "--topic", "kept", version=version)
        assert made.returncode == 0, made.stderr
        produced = run_tool(
            "kafka.tools.ConsoleProducer",
            *server,
            "--topic",
            "kept",
            # It sends again what is not answered in a second and a half.
            *("--request-timeout-ms", "60000"),
            version=version,
            input="one\ntwo\nthree\n",
        )
        assert produced.returncode == 0, produced.stderr
        kafka.stop()
        kafka.start()
        await_leaders(kafka.bootstrap, ["kept"])
        offsets = run_tool(
            offset_tool, "--broker-list", kafka.bootstrap, "--topic", "kept", version=version
        )
        assert sum(int(line.split(":")[2]) for line in offsets.stdout.split()) == 3
        assert {path.name for path in kafka.log_dirs[0].glob("kept-*")} == {"kept-0", "kept-1"}
        pids = [kafka.pid, kafka.zookeeper.pid if kafka.zookeeper else 0]
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_bad_setting_gives_the_tail_of_the_log(tmp_path: Path) -> None:
    """A broker that refuses to start says why in the error, and leaves no process behind."""
    kafka = ApacheKafka(directory=tmp_path, heap="256M", overrides={"num.partitions": "-5"})
    with pytest.raises(OracleError, match=r"num\.partitions"):
        kafka.start()
    assert not kafka.running
    assert kafka.zookeeper is not None
    assert not kafka.zookeeper.running


def test_classpath_is_remembered_and_complete() -> None:
    """The class path is the same on each call and names only jars that exist."""
    jars = classpath().split(":")
    assert classpath().split(":") == jars
    assert all(Path(jar).exists() for jar in jars)
    assert any("zookeeper-3" in jar for jar in jars)


def test_workers_of_one_run_draw_ports_of_their_own() -> None:
    """Two test processes never give each other's servers the same port."""
    parts = [ports_of(f"gw{worker}") for worker in range(8)]
    assert all(len(part) > 1000 for part in parts)
    assert len(set().union(*parts)) == sum(map(len, parts))
    assert set().union(*parts) <= set(ports_of(""))
