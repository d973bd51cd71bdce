"""What tools take of a properties file on their way to ZooKeeper."""

from __future__ import annotations

from pathlib import Path

import pytest
from kazoo.security import CREATOR_ALL_ACL

from barnabas_broker.cli.errors import InputError
from barnabas_broker.cli.zookeeper_client import tool_credentials
from barnabas_broker.zk.credentials import Credentials
from tests.broker.cli.conftest import run_command
from tests.broker.cli.test_zookeeper import client, started
from tests.oracle.certificates import Certificate


@pytest.fixture(autouse=True)
def nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine has there."""
    monkeypatch.delenv("KAFKA_OPTS", raising=False)


def test_a_file_of_a_broker_will_do(tmp_path: Path) -> None:
    """What is not about its way to ZooKeeper is passed over, ACLs on what it writes too."""
    trust = Certificate("authority").write_trust(tmp_path / "trust.pem")
    file = tmp_path / "server.properties"
    file.write_text(
        "broker.id=not a number\nzookeeper.set.acl=true\nzookeeper.ssl.client.enable=true\n"
        f"zookeeper.ssl.truststore.location={trust}\nbarnabas.zookeeper.digest=kafka:secret\n"
    )
    found = tool_credentials(file)
    assert found.tls is not None
    assert len(found.tls.get_ca_certs()) == 1
    assert (found.digest, found.set_acl) == ("kafka:secret", False)


def test_the_user_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """KAFKA_OPTS counts without any file, as for Kafka's own tools."""
    assert tool_credentials(None) == Credentials()
    jaas = tmp_path / "jaas.conf"
    module = "org.apache.zookeeper.server.auth.DigestLoginModule"
    jaas.write_text(f'Client {{ {module} required username="u" password="p"; }};')
    monkeypatch.setenv("KAFKA_OPTS", f"-Djava.security.auth.login.config={jaas}")
    login = tool_credentials(None).login
    assert login is not None
    assert login.username == "u"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("zookeeper.ssl.client.enable=perhaps", r"zookeeper\.ssl\.client\.enable"),
        ("zookeeper.ssl.client.enable=true\nzookeeper.ssl.protocol=SSLv3", "SSLv3 is not offered"),
        ("barnabas.zookeeper.jaas.file=/none", "/none: No such file"),
    ],
)
def test_invalid_settings_are_reported_before_connecting(
    tmp_path: Path, line: str, reason: str
) -> None:
    """By name, as a broker tells it."""
    file = tmp_path / "client.properties"
    file.write_text(line)
    with pytest.raises(InputError, match=reason):
        tool_credentials(file)
    reported = run_command(
        "zk", "ls", "--zk-tls-config-file", str(file), "-z", "127.0.0.1:1", fails=2
    )
    assert reported.stderr.startswith("Error: ")


def test_a_protected_znode_is_shown_to_its_owner_only(tmp_path: Path) -> None:
    """It is shown to who says who he is, and to nobody else."""
    file = tmp_path / "client.properties"
    file.write_text("barnabas.zookeeper.digest=kafka:secret\n")
    with started(tmp_path / "data") as (_, address), client(address) as kazoo:
        kazoo.add_auth("digest", "kafka:secret")
        kazoo.create("/private", b"mine", acl=CREATOR_ALL_ACL)
        command = ("zk", "get", "/private", "-z", address)
        reported = run_command(*command, "--zk-tls-config-file", str(file)).stdout
        assert reported.startswith("mine\n")
        assert "its ACL is for others" in run_command(*command, fails=1).stderr
