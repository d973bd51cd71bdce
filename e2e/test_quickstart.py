"""The quickstart: from `kubectl apply` to records that go in, out and into files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from e2e import kafka
from e2e.quickstart import MAIN, Quickstart
from tools import demo_input

FILES: Final = 300


def packages() -> list[kafka.Record]:
    """This machine's packages, or its tables where it has none."""
    return list(demo_input.packages()) or list(demo_input.tables())


def files() -> list[kafka.Record]:
    """Files of Python's library that fit into a broker's default limit."""
    return [record for record in demo_input.sources() if len(record[1]) < 900_000][:FILES]


def test_kubectl_shows_that_everything_is_ready(quickstart: Quickstart) -> None:
    """`kubectl get` has a line for each resource, with the columns people look for."""
    kinds = "kafkaclusters,kafkatopics,kafkapipelines"
    lines = quickstart.cluster.kubectl("get", kinds, "-n", MAIN, "--no-headers").splitlines()
    shown = {line.split()[0].split("/")[1]: line.split() for line in lines if line}
    assert set(shown) == {"quickstart", "packages", "files", "packages-to-parquet"}
    assert "True" in shown["quickstart"]
    assert shown["packages"][1:6] == ["quickstart", "packages", "3", "1", "True"]
    assert "Running" in shown["packages-to-parquet"]


def test_the_broker_is_registered_in_zookeeper(quickstart: Quickstart) -> None:
    """The coordination data are Apache ZooKeeper's: Kafka's znodes under the cluster's name."""
    tool = ["java", "-cp", "/opt/zookeeper/conf:/opt/zookeeper/lib/*"]
    tool += ["org.apache.zookeeper.ZooKeeperMain", "-server", "localhost:2181"]
    for path, expected in (
        ("/quickstart/brokers/ids/0", '"listener_security_protocol_map"'),
        ("/quickstart/controller", '"brokerid":0'),
        ("/quickstart/brokers/topics/packages", '"partitions"'),
    ):
        reported = quickstart.cluster.kubectl(
            "exec", "-n", MAIN, "quickstart-zookeeper-0", "--", *tool, "get", path
        )
        assert expected in reported, path


def test_kafkas_tools_are_in_the_image(quickstart: Quickstart) -> None:
    """By their names, with and without `.sh`, and with Kafka's words for what is told."""

    def said(*command: str) -> list[str]:
        reported = quickstart.cluster.kubectl(
            "exec", "-n", MAIN, "quickstart-broker-0", "--", *command
        )
        return reported.splitlines()

    here = ("--bootstrap-server", "localhost:9092")
    assert {"packages", "files"} <= set(said("kafka-topics.sh", *here, "--list"))
    (described, *partitions) = said("kafka-topics", *here, "--describe", "--topic", "packages")
    assert "PartitionCount: 3" in described
    assert len(partitions) == 3
    offsets = said("kafka-run-class", "kafka.tools.GetOffsetShell", *here, "--topic", "packages")
    assert [line.rpartition(":")[0] for line in offsets] == [f"packages:{n}" for n in range(3)]


def test_pods_cannot_write_to_their_images(quickstart: Quickstart) -> None:
    """Every pod runs as user 1001 on a root file system that is read-only."""
    attempt = "id -u && if touch /opt/x 2>/dev/null || touch /x 2>/dev/null; then echo written; fi"
    pods = quickstart.cluster.list(
        "pod", namespace=MAIN, selector="app.kubernetes.io/managed-by=barnabas-operator"
    )
    names = {pod["metadata"]["name"] for pod in pods}
    assert names >= {"quickstart-broker-0", "quickstart-zookeeper-0"}
    for name in names:
        reported = quickstart.cluster.kubectl("exec", "-n", MAIN, name, "--", "sh", "-c", attempt)
        assert reported.split() == ["1001"], name


def test_a_pod_reads_what_the_host_sent(quickstart: Quickstart) -> None:
    """Records sent through a port of the nodes come out of the bootstrap Service byte for byte."""
    quickstart.start_client_pod()
    records = packages()
    sent = quickstart.send("packages", records)
    assert len(sent) == len(records)
    assert sorted(quickstart.read_in_pod("packages")) == sorted(records)


def test_the_host_reads_what_a_pod_sent(quickstart: Quickstart) -> None:
    """And the other way round, with whole files as records."""
    records = files()
    quickstart.send_in_pod("files", records)
    assert sorted(quickstart.read("files").values()) == sorted(records)


def test_the_pipeline_writes_what_it_reads(quickstart: Quickstart, tmp_path: Path) -> None:
    """DuckDB finds each record of the topic once in the files: place, key and value."""
    there = quickstart.read("packages")
    quickstart.pipeline.wait_until_landed(len(there))
    assert quickstart.pipeline.landed(tmp_path) == there
