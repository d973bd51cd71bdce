"""Where Java and ZooKeeper's jars are found, and whose data a member may start on."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas_broker.cli import apache_zookeeper
from barnabas_broker.cli.apache_zookeeper import Places
from barnabas_broker.cli.errors import CommandError
from tests.broker.cli.conftest import run_command


def program(path: Path) -> Path:
    """Something that can be run."""
    path.parent.mkdir(parents=True)
    path.touch(0o755)
    return path


def test_java_of_its_home_comes_first(tmp_path: Path) -> None:
    """Then that of the path; a home without one is passed over."""
    home, path = program(tmp_path / "home/bin/java"), program(tmp_path / "bin/java")
    where = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "bin")}
    assert apache_zookeeper.java(where) == str(home)
    assert apache_zookeeper.java(where | {"JAVA_HOME": str(tmp_path)}) == str(path)
    assert apache_zookeeper.java({"PATH": str(tmp_path / "bin")}) == str(path)
    with pytest.raises(CommandError, match="apt-get install zookeeper"):
        apache_zookeeper.java({"PATH": str(tmp_path)})


def test_jars_that_a_variable_names(tmp_path: Path) -> None:
    """ZooKeeper's own archive, or Kafka's; their logging is beside them."""
    for folder, name in (("zookeeper/lib", "ZOOKEEPER_HOME"), ("kafka/libs", "KAFKA_HOME")):
        place = tmp_path / folder
        place.mkdir(parents=True)
        place.joinpath("zookeeper-3.9.3.jar").touch()
        found = apache_zookeeper.class_path({name: str(place.parent)})
        assert found == f"{place}/*:{place.parent}/conf"


def test_jars_of_debian(tmp_path: Path) -> None:
    """With those that write a log, which its zookeeper.jar does not name."""
    places = Places((), debian=tmp_path)
    with pytest.raises(CommandError, match="no jars of Apache ZooKeeper are found: install"):
        apache_zookeeper.class_path({}, places)
    tmp_path.joinpath("zookeeper.jar").touch()
    names = ("zookeeper.jar", "slf4j-log4j12.jar", "log4j-1.2.jar")
    expected = ":".join(str(tmp_path / name) for name in names)
    assert apache_zookeeper.class_path({}, places) == expected
    with pytest.raises(CommandError, match="needs a Java, and there is none: install"):
        apache_zookeeper.server_command(tmp_path / "zoo.cfg", {"PATH": str(tmp_path)}, places)


def test_jars_of_an_unpacked_archive_come_before_those_of_debian(tmp_path: Path) -> None:
    """A directory without them is passed over."""
    (tmp_path / "lib").mkdir()
    for jar in ("zookeeper.jar", "lib/zookeeper-3.9.3.jar"):
        tmp_path.joinpath(jar).touch()
    places = Places((tmp_path / "none", tmp_path / "lib"), debian=tmp_path)
    assert apache_zookeeper.class_path({}, places) == f"{tmp_path}/lib/*:{tmp_path}/conf"


def test_a_number_is_claimed_once(tmp_path: Path) -> None:
    """It is written beside the data, and held against the next start."""
    config = tmp_path / "zoo.cfg"
    config.write_text(f"dataDir={tmp_path}/data\nserver.1=a:1:2\nserver.2=b:1:2\n")
    apache_zookeeper.claim(config, 2)
    assert tmp_path.joinpath("data", "myid").read_text() == "2\n"
    apache_zookeeper.claim(config, 2)
    with pytest.raises(CommandError, match=r"says server\.2, and this is to be server\.1"):
        apache_zookeeper.claim(config, 1)
    with pytest.raises(CommandError, match=r"has no server\.3, only 1, 2"):
        apache_zookeeper.claim(config, 3)
    config.write_text("clientPort=2181\n")
    with pytest.raises(CommandError, match="has no dataDir"):
        apache_zookeeper.claim(config, 1)


def test_one_line_says_why_it_is_no_member(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by `barnabas zookeeper member`; without Java nothing is claimed."""
    config = tmp_path / "zoo.cfg"
    config.write_text(f"dataDir={tmp_path}/data\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", "")
    tmp_path.joinpath("zookeeper-3.9.3.jar").touch()
    tmp_path.joinpath("lib").symlink_to(tmp_path)
    monkeypatch.setenv("ZOOKEEPER_HOME", str(tmp_path))
    failed = run_command("zookeeper", "member", str(config), "--id", "1", fails=1)
    assert failed.stderr.startswith("Error: ZooKeeper needs a Java, and there is none: install")
    assert not tmp_path.joinpath("data").exists()
