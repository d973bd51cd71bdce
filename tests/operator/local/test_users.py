"""A secured cluster on a laptop: its users, their files, and what is refused to others."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from barnabas_operator.api.conditions import is_ready
from barnabas_operator.local.broker import BrokerFiles
from barnabas_operator.local.state import LocalError
from tests.operator import examples
from tests.operator.local.laptop import Laptop, bare, secured_cluster, topic
from tests.operator.local.terminal import Terminal
from tests.oracle.apache import free_port
from tests.waiting import ANSWER, ATTEMPT_S, RUN, seconds

TOPIC = "packages"
COMMAND = (sys.executable, "-P", "-m", "barnabas_broker.cli")
Document = dict[str, Any]


def user(name: str, **spec: Any) -> Document:
    """A KafkaUser as a person writes it."""
    return bare(examples.user(name, **spec))


READER = {"roles": [{"type": "consumer", "topic": TOPIC, "group": "billing"}]}
WRITER = {"roles": [{"type": "producer", "topic": TOPIC}]}
QUOTAS = {"producerByteRate": 1_048_576}


def users(*, quotas: Document | None = None) -> list[Document]:
    """One who writes the topic, and one who reads it."""
    given = {"quotas": quotas} if quotas else {}
    return [user("shop", authorization=WRITER, **given), user("billing", authorization=READER)]


def librdkafka(laptop: Laptop, name: str) -> dict[str, Any]:
    """The user's settings, of the file that has them for librdkafka."""
    found: dict[str, Any] = json.loads((laptop.state.user(name) / "librdkafka.json").read_text())
    return {**found, "log_level": 0}


def from_lines(laptop: Laptop, name: str) -> dict[str, Any]:
    """The same of the file with lines, which names the other files."""
    text = (laptop.state.user(name) / "librdkafka.properties").read_text()
    return {**dict(line.split("=", 1) for line in text.splitlines()), "log_level": 0}


def send(settings: dict[str, Any], value: bytes) -> KafkaError | None:
    """Send a record; returns why it was refused."""
    answers: list[KafkaError | None] = []
    producer = Producer({**settings, "message.timeout.ms": int(seconds(ANSWER) * 1000)})
    producer.produce(TOPIC, value, on_delivery=lambda error, _: answers.append(error))
    assert producer.flush(seconds(ANSWER) * 2) == 0
    return answers[0]


def read(settings: dict[str, Any], group: str = "billing") -> bytes | None:
    """The first record of the topic."""
    consumer = Consumer({**settings, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    try:
        message = consumer.poll(seconds(ANSWER))
        assert message is not None
        if error := message.error():
            raise KafkaException(error)
        return message.value()
    finally:
        consumer.close()


def refused(settings: dict[str, Any], timeout_s: float = ATTEMPT_S) -> bool:
    """Whether no metadata are to be had."""
    try:
        AdminClient(settings).list_topics(timeout=timeout_s)
    except KafkaException:
        return True
    return False


def accepted(settings: dict[str, Any]) -> bool:
    """Whether a client comes in."""
    return not refused(settings, seconds(ANSWER))


def paste(command: str, stdin: str = "", *, environment: Mapping[str, str] = os.environ) -> str:
    """What a command prints that `up` or `status` has shown."""
    words = command.split()
    assert words[0] == "barnabas"
    done = subprocess.run(
        [*COMMAND, *words[1:]],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=seconds(RUN),
        check=False,
        env={name: it for name, it in environment.items() if not name.startswith("BARNABAS_")},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def secrets_of(laptop: Laptop) -> list[str]:
    """Every password, token and key that is kept for the cluster."""
    kept = laptop.state
    files = [*kept.path.glob("users/*/*password"), kept.pki / "admin-token"]
    found = [file.read_text() for file in files]
    keys = (
        *kept.path.glob("users/*/user.key"),
        *kept.pki.glob("*.pem"),
        kept.pki / "authority.key",
    )
    for file in keys:
        text = file.read_text()
        if "PRIVATE KEY" in text:
            found.append(text.splitlines()[1])
    return found


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptop]:
    """A secured cluster with two users, which its tests leave as it is."""
    laptop = Laptop(tmp_path_factory.mktemp("secured"))
    laptop.up(secured_cluster(), topic(), *users(quotas=QUOTAS))
    yield laptop
    laptop.down()


def test_users_do_what_their_acls_allow(shared: Laptop) -> None:
    """By the files of each, and nothing else configured."""
    assert send(librdkafka(shared, "shop"), b"one") is None
    assert read(from_lines(shared, "billing")) == b"one"
    denied = send(librdkafka(shared, "billing"), b"two")
    assert denied is not None
    assert denied.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(KafkaException) as raised:
        read(librdkafka(shared, "billing"), group="another")
    assert raised.value.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED


def test_unauthenticated_clients_are_refused(shared: Laptop) -> None:
    """Without TLS, without a password, with a wrong one, or at the brokers' own listener."""
    settings = librdkafka(shared, "shop")
    address = {"bootstrap.servers": settings["bootstrap.servers"], "log_level": 0}
    assert refused(address)
    trust = {"ssl.ca.pem": settings["ssl.ca.pem"]}
    assert refused({**address, **trust, "security.protocol": "SSL"})
    assert refused({**settings, "sasl.password": "wrong"})
    record = shared.state.load()
    assert record is not None
    own = f"127.0.0.1:{record.brokers[0].ports['replication'].got}"
    assert refused({**trust, "bootstrap.servers": own, "security.protocol": "SSL", "log_level": 0})
    assert accepted(settings)


def test_the_commands_that_are_shown_work(shared: Laptop) -> None:
    """The admin's at once, wherever the broker's port is; each user has one that it may run."""
    rows = shared.look().users
    assert list(rows) == ["admin", "shop", "billing"]
    assert TOPIC in paste(rows["admin"].command).split()
    paste(rows["shop"].command, stdin="pasted\n")
    assert rows["billing"].command.startswith(f"barnabas consume {TOPIC} --group billing ")
    paste(f"{rows['billing'].command} --from-beginning --max-messages 1")
    config = f"--command-config {rows['admin'].command_config}"
    assert "User:billing" in paste(f"barnabas acls list {config}")
    assert "producer_byte_rate" in paste(f"barnabas quotas list {config}")


def test_files_are_for_their_owner_alone(shared: Laptop) -> None:
    """Keys and passwords, and the directories that have them."""
    private = [shared.state.pki, shared.state.path / "users"]
    for directory in (*private, *private[1].iterdir()):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700, directory
    for file in (each for top in private for each in top.rglob("*") if each.is_file()):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    names = {each.name for each in shared.state.user("shop").iterdir()}
    assert {"client.properties", "librdkafka.json", "librdkafka.properties", "spark.json", "url",
            "username", "password", "ca.crt"} <= names  # fmt: skip


def test_no_secret_is_shown(shared: Laptop) -> None:
    """Neither in the record nor in a log, in what is said, or in the table of processes."""
    found = secrets_of(shared)
    assert len(found) >= 7
    shown = "\n".join(shared.said) + json.dumps(shared.look().as_json())
    shown += (shared.state.path / "cluster.json").read_text()
    for file in shared.state.path.glob("broker-*/*"):
        if file.is_file():
            shown += file.read_text(errors="replace")
    for process in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            try:
                shown += (process / name).read_bytes().decode(errors="replace")
            except OSError:
                continue
    assert not [each for each in found if each in shown]


def test_status_shows_certificates_and_users(shared: Laptop) -> None:
    """Secured, when its certificates expire, and each user with the path of its file."""
    seen = shared.look()
    assert seen.status.security == "Secured"
    assert [each.name for each in seen.status.certificates] == ["cluster-ca", "broker"]
    assert [each.name for each in seen.status.listeners] == ["scram"]
    (shop,) = [each for each in seen.as_json()["users"] if each["name"] == "shop"]
    assert shop["commandConfig"] == str(shared.state.user("shop") / "client.properties")
    assert all(is_ready(each.status.conditions) for each in seen.users.values())
    assert seen.brokers[0].admin is not None
    assert seen.brokers[0].admin.startswith("https://")


def test_the_second_time_nothing_is_done(laptop: Laptop) -> None:
    """Also after a crash: passwords, certificates and ports are those of before."""
    laptop.up(secured_cluster(), topic(), *users())
    before = laptop.files()
    laptop.up()
    assert laptop.said == []
    laptop.kill()
    seen = laptop.up()
    assert is_ready(seen.status.conditions)
    assert laptop.files() == before
    laptop.down()
    laptop.up()
    assert laptop.files() == before
    assert send(librdkafka(laptop, "shop"), b"one") is None


def test_a_user_that_changes_and_goes(laptop: Laptop) -> None:
    """ACLs and quotas follow the file; credentials and files go with the resource, or are kept."""
    cluster, (shop, billing) = secured_cluster(), users()
    laptop.up(cluster, topic(), shop, billing)
    settings = librdkafka(laptop, "billing")
    shop["spec"]["authorization"] = READER
    shop["spec"]["deletionPolicy"] = "Retain"
    laptop.up(cluster, topic(), shop, billing)
    assert any(said.startswith("user shop: ") and "delete ACL" in said for said in laptop.said)
    kept = librdkafka(laptop, "shop")
    assert send(kept, b"one") is not None
    laptop.up(cluster, topic())
    assert "user billing: delete, its KafkaUser billing is gone" in laptop.said
    assert refused(settings)
    assert accepted(kept)
    assert laptop.state.users() == ["admin"]


def test_a_username_that_changes(laptop: Laptop) -> None:
    """Who had the former one does not come in any more."""
    cluster, shop = secured_cluster(), user("shop", authorization=WRITER)
    laptop.up(cluster, topic(), shop)
    before = librdkafka(laptop, "shop")
    shop["spec"]["username"] = "store"
    assert laptop.up(cluster, topic(), shop).ready
    assert refused(before)
    assert send(librdkafka(laptop, "shop"), b"one") is None
    record = laptop.state.load()
    assert record is not None
    assert set(record.users) == {"admin", "store"}


def test_a_password_of_ones_own(laptop: Laptop) -> None:
    """Written into its file; the other files and the broker follow. A lost one is another."""
    laptop.up(secured_cluster(), topic(), *users())
    old = librdkafka(laptop, "shop")
    (laptop.state.user("shop") / "password").write_text("pencil and \\ paper")
    (ready, *_) = laptop.look().users["shop"].status.conditions
    assert ready.message == "`barnabas local up` would: set the SCRAM-SHA-512 credential"
    laptop.up()
    assert laptop.said == ["user shop: set the SCRAM-SHA-512 credential"]
    new = librdkafka(laptop, "shop")
    assert new["sasl.password"] == "pencil and \\ paper"
    assert refused(old)
    assert send(new, b"one") is None
    paste(laptop.look().users["shop"].command, stdin="two\n")
    shutil.rmtree(laptop.state.user("shop"))
    assert not is_ready(laptop.look().users["shop"].status.conditions)
    laptop.up()
    assert librdkafka(laptop, "shop")["sasl.password"] not in ("", new["sasl.password"])
    assert send(librdkafka(laptop, "shop"), b"three") is None


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_password_of_an_editor(laptop: Laptop, end: bytes) -> None:
    """Editors and `echo` end a file with a line break, which is no part of the password."""
    laptop.up(secured_cluster(), topic(), *users())
    (laptop.state.user("shop") / "password").write_bytes(b"pencil and paper" + end)
    laptop.up()
    assert librdkafka(laptop, "shop")["sasl.password"] == "pencil and paper"
    assert send(librdkafka(laptop, "shop"), b"one") is None
    laptop.up()
    assert laptop.said == []


def test_a_password_that_cannot_be(laptop: Laptop) -> None:
    """It is refused with its file; another one never takes its place unasked."""
    laptop.up(secured_cluster(), topic(), *users())
    file = laptop.state.user("shop") / "password"
    before = librdkafka(laptop, "shop")
    file.write_text("pencil\tand paper ")
    (ready, *_) = laptop.up().users["shop"].status.conditions
    assert (ready.status, ready.reason) == ("False", "InvalidPassword")
    assert str(file) in ready.message
    assert "pencil" not in ready.message
    assert file.read_text() == "pencil\tand paper "
    assert accepted(before)
    file.unlink()
    assert laptop.up().ready
    assert refused(before)
    assert accepted(librdkafka(laptop, "shop"))


def test_a_user_with_a_certificate(laptop: Laptop) -> None:
    """Beside one with a password; its files work with librdkafka and with every command."""
    wanted = secured_cluster(
        listeners=[
            {"name": "scram", "port": free_port(), "tls": {},
             "authentication": {"type": "scram-sha-256"}},
            {"name": "certs", "port": free_port(), "tls": {}, "authentication": {"type": "tls"}},
        ]
    )  # fmt: skip
    machine = user("machine", authentication={"type": "tls"}, authorization=WRITER)
    other = user("shop", authentication={"type": "scram-sha-256"}, authorization=WRITER)
    seen = laptop.up(wanted, topic(), machine, other)
    assert seen.users["machine"].status.certificate_not_after
    assert send(librdkafka(laptop, "machine"), b"one") is None
    assert send(from_lines(laptop, "machine"), b"two") is None
    assert send(librdkafka(laptop, "shop"), b"three") is None
    config = f"--command-config {seen.users['machine'].command_config}"
    assert paste(f"barnabas topics list {config}").split() == [TOPIC]
    paste(f"barnabas log-dirs describe --topic {TOPIC} --command-config"
          f" {seen.users['admin'].command_config}")  # fmt: skip
    denied = read_error(librdkafka(laptop, "machine"))
    assert denied == KafkaError.GROUP_AUTHORIZATION_FAILED
    before = laptop.files()
    laptop.up()
    assert (laptop.said, laptop.files()) == ([], before)
    machine["metadata"]["annotations"] = {"barnabas.io/rotate": "again"}
    laptop.up(wanted, topic(), machine, other)
    changed = {name for name, it in laptop.files().items() if before.get(name) != it}
    assert changed
    assert all(name.startswith("users/machine/") for name in changed)
    assert send(librdkafka(laptop, "machine"), b"four") is None


def test_a_user_of_another_type(laptop: Laptop) -> None:
    """The files of the former type go, and what a person put beside them stays."""
    wanted = secured_cluster(
        listeners=[
            {**examples.SECURED_LISTENER, "port": free_port()},
            {"name": "certs", "port": free_port(), "tls": {}, "authentication": {"type": "tls"}},
        ]
    )
    shop, place = user("shop", authorization=WRITER), laptop.state.user("shop")
    laptop.up(wanted, topic(), shop)
    before = {each.name for each in place.iterdir()}
    place.joinpath("mine").mkdir()
    place.joinpath("thesis.tex").touch()
    shop["spec"]["authentication"] = {"type": "tls"}
    assert laptop.up(wanted, topic(), shop).ready
    assert not place.joinpath("password").exists()
    assert send(librdkafka(laptop, "shop"), b"one") is None
    del shop["spec"]["authentication"]
    assert laptop.up(wanted, topic(), shop).ready
    assert {each.name for each in place.iterdir()} == {*before, "mine", "thesis.tex"}
    assert send(librdkafka(laptop, "shop"), b"two") is None


def read_error(settings: dict[str, Any]) -> int:
    """Why the topic cannot be read."""
    with pytest.raises(KafkaException) as raised:
        read(settings)
    code: int = raised.value.args[0].code()
    return code


def test_three_brokers_and_the_loss_of_one(laptop: Laptop) -> None:
    """They replicate over TLS, and a user's records survive one of them."""
    listener = {**examples.SECURED_LISTENER, "port": free_port(3)}
    brokers = {"replicas": 3, "storage": {"size": "1Gi"}}
    wanted = secured_cluster(brokers=brokers, listeners=[listener])
    seen = laptop.up(wanted, topic(partitions=1, replicas=3), *users())
    assert is_ready(seen.status.conditions)
    assert send(librdkafka(laptop, "shop"), b"one") is None
    reader = {**librdkafka(laptop, "billing"), "enable.auto.commit": False}
    # Before the loss, too: the topic of offsets is created with the first group, on three brokers.
    assert read(reader) == b"one"
    laptop.kill(1)
    assert read(reader) == b"one"
    assert is_ready(laptop.up().status.conditions)


def test_a_file_that_is_secured_by_the_option(laptop: Laptop) -> None:
    """What it leaves plain is secured, and stays so without the option."""
    listeners = [{"name": "plain", "type": "internal", "port": free_port()}]
    wanted = bare(examples.cluster(listeners=listeners, insecure=True))
    seen = laptop.up(wanted, topic(), secure=True)
    assert seen.status.security == "Secured"
    assert accepted(librdkafka(laptop, "admin"))
    seen = laptop.up(wanted, topic())
    assert (laptop.said, seen.status.security) == ([], "Secured")
    assert "was created secured" in laptop.manifest().notes[0]


def test_an_insecure_cluster_stays_insecure(laptop: Laptop) -> None:
    """What was written before there were secured ones, too; the option is refused for it."""
    listeners = [{"name": "plain", "type": "internal", "port": free_port()}]
    wanted = bare(examples.cluster(listeners=listeners, insecure=True))
    laptop.up(wanted, topic())
    path = laptop.state.path / "cluster.json"
    reported = json.loads(path.read_text())
    del reported["security"], reported["users"]
    del wanted["spec"]["insecure"]
    for document in reported["documents"]:
        document["spec"].pop("insecure", None)
    path.write_text(json.dumps(reported))
    assert laptop.look().status.security == "Insecure"
    seen = laptop.up(wanted, topic())
    assert (laptop.said, seen.status.security) == ([], "Insecure")
    with pytest.raises(Exception, match="was created insecure, and stays so"):
        laptop.up(wanted, topic(), secure=True)
    path.unlink()
    assert laptop.up(wanted, topic()).status.security == "Insecure"


def test_data_and_keys_are_deleted_together(laptop: Laptop) -> None:
    """`down` keeps them, `--delete-data` leaves nothing."""
    laptop.up(secured_cluster(), topic(), *users())
    laptop.down()
    assert laptop.state.pki.is_dir()
    assert not is_ready(laptop.look().users["shop"].status.conditions)
    laptop.down(delete_data=True)
    assert not laptop.state.path.exists()


def test_a_damaged_record(laptop: Laptop) -> None:
    """Ports, users and keys are those of before."""
    seen = laptop.up(secured_cluster(), topic(), *users())
    settings = librdkafka(laptop, "shop")
    (laptop.state.path / "cluster.json").write_text("{")
    again = laptop.up(repair=True)
    assert again.status.listeners == seen.status.listeners
    assert again.status.security == "Secured"
    assert again.ready
    assert librdkafka(laptop, "shop") == settings
    assert send(settings, b"one") is None
    (laptop.state.path / "cluster.json").unlink()
    assert laptop.up().ready
    assert librdkafka(laptop, "shop") == settings
    # They go with their resources again: the ledger has them.
    laptop.up(secured_cluster(), topic())
    assert refused(settings)


@pytest.mark.parametrize(
    "damage",
    [
        {"broker.pem": "-----BEGIN PRIVATE KEY-----\nMIG"},
        {"operator.pem": ""},
        {"authority.key.new": "half of a", "broker.pem.new": ""},
        {"admin-token": "", "clients-ca.crt": ""},
    ],
)
def test_an_interrupted_write_is_repeated(laptop: Laptop, damage: dict[str, str]) -> None:
    """It is written again; users and their files stay."""
    laptop.up(secured_cluster(), topic(), *users())
    laptop.down()
    settings = librdkafka(laptop, "shop")
    for name, text in damage.items():
        (laptop.state.pki / name).write_text(text)
    assert is_ready(laptop.up().status.conditions)
    assert send(settings, b"one") is None


def test_an_authority_that_is_damaged(laptop: Laptop) -> None:
    """Clients trust it, so it is replaced only when that is asked for, and they read it again."""
    laptop.up(secured_cluster(), topic(), *users())
    before = librdkafka(laptop, "shop")
    (laptop.state.pki / "authority.key").write_text("none")
    with pytest.raises(LocalError, match=r"authority in .* cannot be used: .*--repair"):
        laptop.up()
    laptop.up(repair=True)
    assert any(said.startswith("restarting the broker") for said in laptop.said)
    assert refused(before)
    assert send(librdkafka(laptop, "shop"), b"one") is None
    # A key without a certificate has signed nothing: another authority takes its place.
    laptop.down()
    (laptop.state.pki / "authority.pem").unlink()
    laptop.up()
    assert send(librdkafka(laptop, "shop"), b"two") is None


def test_a_declared_user_named_admin_is_no_super_user(laptop: Laptop) -> None:
    """It is no super user then."""
    laptop.up(secured_cluster(), topic(), user("admin", authorization=READER))
    denied = send(librdkafka(laptop, "admin"), b"one")
    assert denied is not None
    text = BrokerFiles(laptop.state.broker(0)).settings.read_text()
    assert "User:admin" not in text


def test_users_of_an_insecure_cluster(laptop: Laptop) -> None:
    """Its listeners with authentication have users; nobody is an admin."""
    listeners = [
        {"name": "plain", "port": free_port()},
        {"name": "scram", "port": free_port(), "authentication": {"type": "scram-sha-512"}},
    ]
    wanted = bare(examples.cluster(listeners=listeners, authorization={}, insecure=True))
    laptop.up(wanted, topic(), *users())
    assert laptop.state.users() == ["billing", "shop"]
    assert not laptop.state.pki.exists()
    assert send(librdkafka(laptop, "shop"), b"one") is None
    assert send(librdkafka(laptop, "billing"), b"one") is not None


def test_in_a_terminal(terminal: Terminal, tmp_path: Path) -> None:
    """One line secures a plain file, and shows a command that works; `status` shows it again."""
    listeners = [{"name": "plain", "type": "internal", "port": free_port()}]
    file = tmp_path / "plain.yaml"
    documents = [bare(examples.cluster(listeners=listeners, insecure=True)), topic()]
    file.write_text(yaml.safe_dump_all([*documents, user("shop", authorization=WRITER)]))
    said = terminal.run("up", "--secure", file)
    shown = [line.partition("user admin: ")[2] for line in said.splitlines()]
    (command,) = [each for each in shown if each.startswith("barnabas ")]
    assert TOPIC in paste(command, environment=terminal.environment).split()
    table = terminal.run("status")
    assert command in table
    (cluster,) = terminal.status()
    assert cluster["status"]["security"] == "Secured"
    assert [each["name"] for each in cluster["users"]] == ["admin", "shop"]
    assert cluster["users"][0]["command"] == command
    as_yaml = terminal.run("status", "--output", "yaml")
    directory = Path(cluster["directory"])
    passwords = [each.read_text() for each in directory.glob("users/*/password")]
    assert len(passwords) == 2
    assert not [each for each in passwords if each in said + table + as_yaml]
    said = terminal.run("up", file)
    assert "spec.insecure is true, and it was created secured, and stays so" in said
    terminal.run("down", file, "--delete-data")
    assert not directory.exists()
    file.write_text(yaml.safe_dump_all(documents))  # A plain cluster has no listener for users.
    terminal.run("up", file)
    said = terminal.run("up", "--secure", file, code=2)
    assert "was created insecure, and stays so" in said
