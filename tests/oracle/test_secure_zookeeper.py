"""ACLs on znodes and TLS to the ensemble, beside an Apache broker that is told the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import ACL

from barnabas_broker.cli.kafka.topics import main as kafka_topics
from tests.broker.cli.conftest import run_command
from tests.clients.brokers import Barnabas
from tests.oracle.apache import ApacheKafka, ZooKeeper, free_port
from tests.oracle.certificates import Certificate
from tests.waiting import ANSWER, START, seconds, wait_for

pytestmark = pytest.mark.jvm

MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
PROVIDERS = "org.apache.zookeeper.server.auth"
PASSWORD = "changeit"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stores and JAAS files: two brokers' certificates, one of an authority nobody knows."""
    directory = tmp_path_factory.mktemp("files")
    authority = Certificate("authority")
    Certificate("zookeeper", authority, host="127.0.0.1").write_pem(directory / "server.pem")
    Certificate("kafka", authority).write_pkcs12(directory / "broker.p12", PASSWORD)
    authority.write_trust(directory / "trust.pem")
    authority.write_trust(directory / "trust.p12", PASSWORD)
    Certificate("stranger").write_trust(directory / "other.pem")
    for name, section, options in (
        ("server", "Server", 'user_kafka="right"'),
        ("right", "Client", 'username="kafka" password="right"'),
        ("wrong", "Client", 'username="kafka" password="wrong"'),
    ):
        (directory / f"{name}.jaas").write_text(f"{section} {{ {MODULE} required {options}; }};\n")
    return directory


class Secured(ZooKeeper):
    """A server with SASL on its plain port, and a port with TLS that asks for certificates."""

    def __init__(self, files: Path, directory: Path) -> None:
        self.secure_port = free_port()
        super().__init__(
            directory=directory,
            overrides={
                "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
                "secureClientPort": str(self.secure_port),
                "secureClientPortAddress": "127.0.0.1",
                "ssl.keyStore.location": str(files / "server.pem"),
                "ssl.trustStore.location": str(files / "trust.pem"),
                "ssl.clientAuth": "want",
                "authProvider.sasl": f"{PROVIDERS}.SASLAuthenticationProvider",
                "authProvider.x509": f"{PROVIDERS}.X509AuthenticationProvider",
            },
            jvm_flags=[f"-Djava.security.auth.login.config={files / 'server.jaas'}"],
        )

    @property
    def secure(self) -> str:
        """``host:port`` of the port with TLS."""
        return f"127.0.0.1:{self.secure_port}"


@pytest.fixture(scope="module")
def zookeeper(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """One server for all; each broker has a chroot."""
    with Secured(files, tmp_path_factory.mktemp("zookeeper")) as started:
        yield started


@contextmanager
def looking(zookeeper: ZooKeeper, password: str = "") -> Iterator[KazooClient]:
    """A client, as the user of the brokers where there is a password, else as nobody."""
    login = {"mechanism": "DIGEST-MD5", "username": "kafka", "password": password}
    client = KazooClient(zookeeper.connect, sasl_options=login if password else None)
    client.start(seconds(START))
    try:
        yield client
    finally:
        client.stop()
        client.close()


def use(bootstrap: str) -> None:
    """Have znodes of all kinds made: a topic with settings, and a broker's own."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.list_topics(timeout=seconds(ANSWER))
    new = NewTopic("t", 2, 1, config={"retention.ms": "-1"})
    admin.create_topics([new])["t"].result(seconds(ANSWER))
    entry = ConfigEntry("log.cleaner.threads", "2", incremental_operation=AlterConfigOpType.SET)
    of_one = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    for done in admin.incremental_alter_configs([of_one]).values():
        done.result(seconds(ANSWER))


def acls(client: KazooClient, chroot: str) -> dict[str, list[ACL]]:
    """The ACL of a chroot and of each znode below it."""
    found: dict[str, list[ACL]] = {}
    waiting = [chroot]
    while waiting:
        path = waiting.pop()
        found[path.removeprefix(chroot) or "/"] = sorted(client.get_acls(path)[0])
        waiting += [f"{path}/{name}" for name in client.get_children(path)]
    return found


def test_the_acls_are_those_of_an_apache_broker(
    zookeeper: Secured, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Authenticated by the same JAAS file, in the same property of the environment."""
    reported = f"-Djava.security.auth.login.config={files / 'right.jaas'}"
    settings = {"zookeeper.set.acl": "true", "broker.id": "1"}
    ours = {"zookeeper.connect": f"{zookeeper.connect}/ours"} | settings
    with Barnabas(tmp_path / "ours", ours, {"KAFKA_OPTS": reported}) as broker:
        use(broker.bootstrap)
        with (
            looking(zookeeper) as stranger,
            looking(zookeeper, "right") as member,
            ApacheKafka(
                directory=tmp_path / "apache",
                zookeeper=f"{zookeeper.connect}/apache",
                overrides=settings,
                jvm_flags=[reported],
                heap="512M",
            ) as apache,
        ):
            use(apache.bootstrap)
            found, expected = acls(member, "/ours"), acls(member, "/apache")
            common = found.keys() & expected.keys()
            assert {
                *("/", "/brokers/ids/1", "/controller", "/consumers", "/config/users"),
                *("/brokers/topics/t/partitions/1/state", "/config/topics/t", "/cluster/id"),
                "/config/brokers/1",
            } <= common
            assert {path: found[path] for path in common} == {
                path: expected[path] for path in common
            }
            # What only one of the two has made is of the same three kinds.
            kinds = {tuple(each) for each in expected.values()}
            assert {tuple(each) for each in found.values()} == kinds
            assert len(kinds) == 3
            for path in ("/ours/brokers/topics/t", "/ours/controller_epoch"):
                assert stranger.get(path)[0]
                with pytest.raises(NoAuthError):
                    stranger.set(path, b"x")
            with pytest.raises(NoAuthError):
                stranger.get("/ours/config/brokers/1")
            with pytest.raises(NoAuthError):
                stranger.create("/ours/brokers/topics/theirs", b"")
        command = ("zk", "get", "/config/brokers/1", "-z", f"{zookeeper.connect}/ours")
        assert "its ACL is for others" in run_command(*command, fails=1).stderr
        monkeypatch.setenv("KAFKA_OPTS", reported)
        assert "log.cleaner.threads" in run_command(*command).stdout


def refused(directory: Path, settings: dict[str, str]) -> str:
    """The one line with which a broker does not start."""
    broker = Barnabas(directory, settings)
    with pytest.raises(RuntimeError, match="did not start"):
        broker.start()
    assert broker.exit_code == 1
    return broker.tail(1)


def test_a_wrong_password_is_reported(zookeeper: Secured, files: Path, tmp_path: Path) -> None:
    """At once, with the user, the file and the section, and without the password."""
    settings = {
        "zookeeper.connect": f"{zookeeper.connect}/wrong",
        "barnabas.zookeeper.jaas.file": str(files / "wrong.jaas"),
    }
    line = refused(tmp_path, settings)
    assert f"refuses the user kafka (Client in {files / 'wrong.jaas'})" in line
    assert "the password is wrong" in line


def test_tls_with_a_certificate_that_znodes_belong_to(
    zookeeper: Secured, files: Path, tmp_path: Path
) -> None:
    """Both stores are PKCS12, as keytool writes them; the certificate is the identity (x509)."""
    settings = {
        "zookeeper.connect": f"{zookeeper.secure}/tls",
        "broker.id": "1",
        "zookeeper.set.acl": "true",
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        "zookeeper.ssl.keystore.location": str(files / "broker.p12"),
        "zookeeper.ssl.keystore.password": PASSWORD,
        "zookeeper.ssl.truststore.location": str(files / "trust.p12"),
        "zookeeper.ssl.truststore.password": PASSWORD,
    }
    with Barnabas(tmp_path / "broker", settings) as broker:
        use(broker.bootstrap)
        with looking(zookeeper) as stranger:
            owners = {each.id for each in stranger.get_acls("/tls/brokers/topics/t")[0]}
            assert owners == {("x509", "CN=kafka"), ("world", "anyone")}
            with pytest.raises(NoAuthError):
                stranger.set("/tls/brokers/topics/t", b"")
        file = tmp_path / "server.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        shown = ("--zk-tls-config-file", str(file))
        where = f"{zookeeper.secure}/tls"
        assert (
            "log.cleaner.threads"
            in run_command("zk", "get", "/config/brokers/1", "-z", where, *shown).stdout
        )
        assert "standalone" in run_command("zk", "status", "-z", where, *shown).stdout
        assert "1 of 1 members" in run_command("zk", "status", "-z", where, fails=1).stderr
        listed = CliRunner().invoke(kafka_topics, ["--list", "--zookeeper", where, *shown])
        assert (listed.exit_code, listed.stdout) == (0, "t\n"), listed.output


def test_the_session_of_a_killed_broker_is_closed_over_tls(
    zookeeper: Secured, files: Path, tmp_path: Path
) -> None:
    """By its supervisor, long before the session times out."""
    settings = {
        "zookeeper.connect": f"{zookeeper.secure}/supervised",
        "zookeeper.session.timeout.ms": "600000",
        "broker.id": "1",
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.keystore.location": str(files / "broker.p12"),
        "zookeeper.ssl.keystore.password": PASSWORD,
        "zookeeper.ssl.truststore.location": str(files / "trust.pem"),
    }
    broker = Barnabas(tmp_path / "broker", settings, options=["--supervised"])
    with broker, looking(zookeeper) as observer:
        owner = observer.get("/supervised/brokers/ids/1")[1].ephemeralOwner
        broker.kill()
        wait_for(
            "the supervisor's line",
            broker.tail,
            until=lambda tail: f"0x{owner % (1 << 64):x} is closed now" in tail,
        )
        assert observer.exists("/supervised/brokers/ids/1") is None


def test_replaced_certificates_count_for_the_next_connection(tmp_path: Path) -> None:
    """Of another authority altogether, for the broker and for what closes a dead one's session."""
    files = tmp_path / "files"
    files.mkdir()

    def issue(name: str) -> None:
        authority = Certificate(name)
        Certificate("zookeeper", authority, host="127.0.0.1").write_pem(files / "server.pem")
        Certificate("kafka", authority).write_pem(files / "broker.pem")
        authority.write_trust(files / "trust.pem")

    issue("first")
    (files / "server.jaas").write_text(f'Server {{ {MODULE} required user_kafka="right"; }};')
    zookeeper = Secured(files, tmp_path / "zookeeper")
    settings = {
        "zookeeper.connect": f"{zookeeper.secure}/renewed",
        "zookeeper.session.timeout.ms": "600000",
        "broker.id": "1",
        "zookeeper.set.acl": "true",
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.keystore.location": str(files / "broker.pem"),
        "zookeeper.ssl.truststore.location": str(files / "trust.pem"),
    }
    broker = Barnabas(tmp_path / "broker", settings, options=["--supervised"])
    with zookeeper:
        broker.start()
    try:
        issue("second")
        with zookeeper, looking(zookeeper) as observer:
            use(broker.bootstrap)
            owner = observer.get("/renewed/brokers/ids/1")[1].ephemeralOwner
            broker.kill()
            wait_for(
                "the supervisor's line",
                broker.tail,
                until=lambda tail: f"0x{owner % (1 << 64):x} is closed now" in tail,
            )
            assert observer.exists("/renewed/brokers/ids/1") is None
    finally:
        broker.stop()


def test_a_certificate_of_an_unknown_authority_is_refused(
    zookeeper: Secured, files: Path, tmp_path: Path
) -> None:
    """What the truststore does not vouch for is not spoken to, and the line says why."""
    settings = {
        "zookeeper.connect": f"{zookeeper.secure}/unknown",
        # It tries for so long: one attempt at least is over then, on a busy machine too.
        "zookeeper.connection.timeout.ms": "15000",
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.truststore.location": str(files / "other.pem"),
    }
    line = refused(tmp_path, settings)
    assert "the certificate of 127.0.0.1 is not accepted: unable to get local issuer" in line
