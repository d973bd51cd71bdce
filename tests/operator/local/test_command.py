"""The commands as a person gives them, each a process of its own."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.operator import examples
from tests.operator.local.laptop import (
    Laptop,
    bare,
    cluster,
    colliding_topics,
    secured_cluster,
    topic,
)
from tests.operator.local.terminal import Terminal

ROUNDED = 0.06
"""Of a tenth of a second, and a clock that ticks every hundredth."""
CONSUMER = {"type": "consumer", "topic": "packages"}


def test_up_status_down(laptop: Laptop, terminal: Terminal) -> None:
    """The three of them, in tables and for programs."""
    laptop.write(cluster(), topic())
    began = time.monotonic()
    out = terminal.run("up", laptop.file)
    took_s = time.monotonic() - began
    assert "quickstart: topic packages: create with 3 partitions of 1 replicas" in out
    files = re.escape(str(terminal.directory / "quickstart"))
    ready = re.search(
        rf"\nquickstart: Ready after (\d+\.\d) s; its files are in {files}$", out, re.M
    )
    assert ready is not None, out
    assert "spec.zookeeper, storage, resources, template, version, images and roll are" in out

    (seen,) = terminal.status()
    assert seen == terminal.status(laptop.file)[0] | {"brokers": seen["brokers"]}
    assert seen["ready"] is True
    (broker,) = seen["brokers"]
    assert broker["running"]
    # What a person has waited for, and not the broker's process alone.
    assert broker["startupSeconds"] - ROUNDED <= float(ready[1]) <= took_s + ROUNDED
    assert broker["memoryBytes"] > 1 << 20
    address = seen["status"]["listeners"][0]["bootstrapServers"]
    table = terminal.run("status", "--name", "quickstart")
    for word in (address, str(broker["pid"]), "packages", "Warning: spec.zookeeper"):
        assert word in table

    assert "the broker is stopped" in terminal.run("down")
    table = terminal.run("status")
    assert "Ready: the broker is stopped; `barnabas local up` starts it" in table
    assert "is deleted" in terminal.run("down", laptop.file, "--delete-data")
    assert terminal.status() == []
    assert "No cluster is known here" in terminal.run("status")
    assert "No cluster is known here" in terminal.run("down")
    assert "Nothing is known of a cluster in" in terminal.run("down", laptop.file)


def test_up_and_down_have_documents(laptop: Laptop, terminal: Terminal) -> None:
    """Standard output is the document alone; what is told on the way is on standard error."""
    laptop.write(cluster())

    (seen,) = terminal.document("up", laptop.file)["clusters"]
    assert (seen["name"], seen["ready"]) == ("quickstart", True)
    directory = str(terminal.directory / "quickstart")
    gone = {"name": "quickstart", "directory": directory, "deleted": True}
    assert terminal.document("down", "--delete-data") == {"clusters": [gone]}


def test_commands_find_the_cluster_by_its_name(laptop: Laptop, terminal: Terminal) -> None:
    """An insecure one by its address, a secured one as its admin or as another user."""
    laptop.write(cluster(), topic())
    terminal.run("up", laptop.file)
    assert "packages" in terminal.command("topics", "list", "--local", "quickstart")
    terminal.run("down", "--delete-data")
    reader = bare(examples.user("reader", authorization={"roles": [CONSUMER]}))
    laptop.write(secured_cluster(), topic(), reader)
    printed = terminal.run("up", laptop.file)
    assert "user admin: barnabas topics list --local quickstart\n" in printed
    assert "user reader: barnabas consume packages --local quickstart/reader\n" in printed
    assert "packages" in terminal.command("topics", "list", "--local", "quickstart")
    listed = terminal.command("offsets", "packages", "--local", "quickstart/reader")
    assert "packages" in listed
    admin = terminal.status()[0]["brokers"][0]["admin"]
    asked = ("brokers", "caught-up", "0", "--admin", f"0={admin}", "--local", "quickstart")
    assert "percent" in terminal.command(*asked)
    link = terminal.directory / "quickstart" / "client.properties"
    assert link.resolve() == link.parent / "users" / "admin" / link.name
    terminal.run("down", "--delete-data")
    assert not link.parent.exists()


@pytest.mark.parametrize("words", [("-",), ("-f", "-")])
def test_a_file_may_come_by_a_pipe(
    laptop: Laptop, terminal: Terminal, words: tuple[str, ...]
) -> None:
    """As `kubectl apply -f -` takes it: up, changed, and down; mistakes have their lines."""
    laptop.write(cluster())
    terminal.run("up", *words, stdin=laptop.file.read_bytes())
    laptop.write(cluster(), topic())
    printed = terminal.run("up", *words, stdin=laptop.file.read_bytes())
    assert "quickstart: topic packages: create with 3 partitions" in printed
    assert terminal.status("-f", laptop.file)[0]["ready"] is True
    laptop.write(cluster(), topic(colour="red"))
    line = laptop.file.read_text().splitlines().index("  colour: red") + 1
    printed = terminal.run("up", *words, stdin=laptop.file.read_bytes(), code=2)
    assert f"Error: standard input: line {line}: KafkaTopic packages: spec.colour" in printed
    laptop.write(cluster())
    terminal.run("down", *words, "--delete-data", stdin=laptop.file.read_bytes())
    assert terminal.status() == []


def test_something_that_is_not_ready_is_a_failure(laptop: Laptop, terminal: Terminal) -> None:
    """Exit code 1, and the reason on a line."""
    laptop.write(cluster(), *colliding_topics())
    out = terminal.run("up", laptop.file, code=1)
    assert "KafkaTopic second is not Ready: Refused: " in out
    assert "Topic 'a_b' collides with existing topics: a.b" in out


def test_a_file_with_mistakes_starts_nothing(laptop: Laptop, terminal: Terminal) -> None:
    """Exit code 2, and all of them at once."""
    config = {"retention.msx": "7", "cleanup.policy": "compacted"}
    laptop.write(
        cluster(),
        topic(partitions=0, config=config),
        topic("files", colour="red"),
        topic("lines", replicas=3),
    )
    out = terminal.run("up", laptop.file, code=2)
    lines = laptop.file.read_text().splitlines()
    for printed, written in (
        ("KafkaTopic packages: spec.partitions: is 0", "  partitions: 0"),
        (
            "KafkaTopic packages: spec.config.retention.msx: not a setting of topics; did you mean",
            "    retention.msx: '7'",
        ),
        (
            "KafkaTopic packages: spec.config.cleanup.policy=compacted: must be a list made of",
            "    cleanup.policy: compacted",
        ),
        ("KafkaTopic files: spec.colour: is no field", "  colour: red"),
        (
            "KafkaTopic lines: spec.replicas: is 3, and KafkaCluster quickstart has one broker",
            "  replicas: 3",
        ),
    ):
        assert f"{laptop.file}: line {lines.index(written) + 1}: {printed}" in out
    assert not terminal.directory.exists()


def test_a_damaged_record_is_repaired(laptop: Laptop, terminal: Terminal) -> None:
    """It hides no other cluster, its broker is stopped all the same, and its ports come back."""
    names = ("one", "two")
    for name in names:
        document = cluster(config={"num.partitions": "2"})
        document["metadata"]["name"] = name
        laptop.write(document, topic(cluster=name))
        terminal.run("up", laptop.file)
    before = terminal.status("--name", "two")[0]
    record = terminal.directory / "two" / "cluster.json"
    record.write_text("{")
    printed = json.loads(terminal.run("status", "--output", "json", code=1).partition("\nError")[0])
    assert [(each["name"], each["ready"]) for each in printed["clusters"]] == [
        ("one", True), ("two", False),
    ]  # fmt: skip
    assert "is damaged" in printed["clusters"][1]["error"]
    shown = terminal.run("status", code=1)
    assert "one      True" in shown
    assert "Error: two: " in shown
    assert "`barnabas local up FILE --repair`" in terminal.run("up", laptop.file, code=1)
    out = terminal.run("up", laptop.file, "--repair")
    assert "two: the record is written again from the files beside it" in out
    after = terminal.status("--name", "two")[0]
    assert after["ready"] is True
    assert after["status"]["listeners"] == before["status"]["listeners"]
    assert after["brokers"][0]["pid"] == before["brokers"][0]["pid"]
    assert after["status"]["clusterId"] == before["status"]["clusterId"]
    assert "nothing to repair" in terminal.run("up", laptop.file, "--repair")
    record.write_text("{")
    assert "the broker is stopped" in terminal.run("down", "--name", "two")
    record.unlink()
    terminal.run("up", laptop.file)
    assert (
        terminal.status("--name", "two")[0]["status"]["listeners"]
        == (before["status"]["listeners"])
    )


def test_the_formats_of_status_agree(laptop: Laptop, terminal: Terminal) -> None:
    """A topic that is not Ready is told by each of them."""
    laptop.write(cluster(), *colliding_topics())
    terminal.run("up", laptop.file, code=1)
    assert terminal.status()[0]["ready"] is False
    assert yaml.safe_load(terminal.run("status", "--output", "yaml"))["clusters"][0]["ready"] is (
        False
    )
    assert "False  KafkaTopic second is not Ready" in terminal.run("status")


def test_which_cluster_is_meant(laptop: Laptop, terminal: Terminal, tmp_path: Path) -> None:
    """By name, by directory, or the only one."""
    laptop.write(cluster())
    for name in ("one", "two"):
        document = cluster()
        document["metadata"]["name"] = name
        laptop.write(document)
        terminal.run("up", laptop.file)
    assert [each["name"] for each in terminal.status()] == ["one", "two"]
    assert "several clusters (one, two): choose with --name" in terminal.run("down", code=2)
    assert "no cluster three is known here; there is one, two" in terminal.run(
        "status", "--name", "three", code=2
    )
    terminal.run("down", "--name", "one", "--delete-data")
    assert [each["name"] for each in terminal.status()] == ["two"]
    place = terminal.directory / "two"
    assert [each["name"] for each in terminal.status("--dir", place)] == ["two"]
    assert "thesis.tex" in _in_a_strange_place(terminal, laptop.file, tmp_path / "mine")


def test_a_directory_is_that_of_the_cluster_that_is_named(
    laptop: Laptop, terminal: Terminal, tmp_path: Path
) -> None:
    """What was recorded in it is not of the other clusters of the file."""
    other = secured_cluster()
    other["metadata"]["name"] = "other"
    laptop.write(cluster(), other)
    chosen = ("--name", "quickstart", "--dir", tmp_path / "mine")
    terminal.run("up", laptop.file, *chosen)
    terminal.run("up", laptop.file, *chosen)
    terminal.run("down", laptop.file, *chosen, "--delete-data")


def test_files_that_cannot_be_used(laptop: Laptop, terminal: Terminal) -> None:
    """A line tells which; `status` shows the other clusters all the same."""
    other = cluster()
    other["metadata"]["name"] = "other"
    laptop.write(other)
    terminal.run("up", laptop.file)
    laptop.write(secured_cluster())
    terminal.run("up", laptop.file)
    pki = terminal.directory / "quickstart" / "pki"
    for name in ("broker.pem", "operator.pem"):
        (pki / name).unlink()
        (pki / name).mkdir()
    out = terminal.run("status", code=1)
    assert "the broker answers" not in out
    assert f"Error: quickstart: cannot read {pki / 'broker.pem'}: Is a directory" in out
    assert str(terminal.directory / "other") in out
    shutil.rmtree(pki)
    pki.touch()
    assert f"Error: {pki}: File exists" in terminal.run("up", laptop.file, code=1)


def _in_a_strange_place(terminal: Terminal, file: Path, directory: Path) -> str:
    directory.mkdir()
    directory.joinpath("thesis.tex").touch()
    return terminal.run("up", file, "--dir", directory, code=1)


def test_the_overview_is_quick(terminal: Terminal) -> None:
    """Nothing that needs a client is imported for it."""
    code = "import sys, barnabas_operator.local.command; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"confluent_kafka", "kubernetes", "jinja2", "rich", "yaml"}
    assert "Run custom resources on this machine" in terminal.run("--help")
