"""No secret is found in anything that a secured broker writes, answers or hands on.

Every kind of secret has a value that is known here. Clients authenticate with them and with wrong
ones, change them, and give the broker stores and login modules that it has to refuse; then
everything is searched.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import ssl
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from barnabas_broker.cli.kafka.configs import main as kafka_configs
from barnabas_broker.cli.main import main as barnabas
from barnabas_broker.security.sasl_settings import OAUTHBEARER_MODULE, PLAIN_MODULE, SCRAM_MODULE
from barnabas_broker.server.process.task_dump import END_OF_DUMP
from barnabas_kafka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas_kafka.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from tests.broker.cli.test_zookeeper import COMMAND as ZOOKEEPER
from tests.clients.brokers import Barnabas
from tests.clients.leaks import Leaks
from tests.clients.wire import Wire, frame
from tests.oracle.certificates import Certificate
from tests.oracle.tokens import Signer, key_set
from tests.waiting import ANSWER, ATTEMPT_S, START, forget, seconds, wait_for, watch

LISTENER: Final = "SASL_SSL"
PREFIX: Final = f"listener.name.{LISTENER.lower()}"
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
SIGNER: Final = Signer("first", "ES256")
STRANGER: Final = Signer("first", "ES384")
AUDIENCE: Final = "kafka"
PATHS: Final = ("/metrics", "/status", "/ready", "/live", "/recovery", "/partitions", "/none")
#: What no two parts of a message can be by chance; quotes would have to be escaped.
MARK: Final = "Zq7"


def secret(name: str) -> str:
    """A value that is found nowhere by chance."""
    return f"{MARK}-{name}-{MARK}"


SECRETS: Final = {
    name: secret(name)
    for name in (
        *("broker", "alice-plain", "alice-scram", "alice-changed", "wrong-password"),
        *("key-store", "wrong-store", "key-in-settings", "jaas-cut-off", "jaas-in-pieces"),
        *("encoder", "token-key", "admin-token", "wrong-admin-token", "digest", "mistyped"),
        *("garbled", "client-option"),
    )
}


@dataclass
class Place:
    """A secured broker, its ZooKeeper, and all that was printed by the tools asked about it."""

    directory: Path
    broker: Barnabas
    zookeeper: str
    leaks: Leaks

    def properties(self, mechanism: str, password: str, user: str = "alice") -> dict[str, Any]:
        """Those of librdkafka."""
        return {
            "bootstrap.servers": self.broker.bootstrap,
            "security.protocol": LISTENER,
            "ssl.ca.location": str(self.directory / "trust.pem"),
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
            "metadata.recovery.strategy": "none",
        }

    def command_config(self, mechanism: str, password: str, user: str) -> Path:
        """A file with them, for tools."""
        file = self.directory / "client" / f"{user}-{mechanism}.properties"
        found = self.properties(mechanism, password, user)
        del found["bootstrap.servers"]
        file.write_text("".join(f"{name}={value}\n" for name, value in found.items()))
        return file

    def tool(self, *words: str, user: str = "broker", password: str = "", fails: int = 0) -> str:
        """Run one of our commands as that user; what it prints is searched."""
        config = self.command_config("SCRAM-SHA-512", password or SECRETS["broker"], user)
        environment = {
            "BARNABAS_BOOTSTRAP": self.broker.bootstrap,
            "BARNABAS_COMMAND_CONFIG": str(config),
            "BARNABAS_ADMIN_TOKEN_FILE": str(self.directory / "admin-tokens"),
        }
        program = kafka_configs if words[0] == "kafka-configs" else barnabas
        done = CliRunner().invoke(program, words[1:], env=environment)
        said = done.output
        assert done.exception is None or isinstance(done.exception, SystemExit), said
        assert done.exit_code == fails, said
        self.leaks.look(" ".join(words[:2]), said)
        return said

    def configs(self, *words: str, fails: int = 0) -> str:
        """The tool of that name."""
        config = self.command_config("SCRAM-SHA-512", SECRETS["broker"], "broker")
        where = ("--bootstrap-server", self.broker.bootstrap, "--command-config", str(config))
        return self.tool("kafka-configs", *where, *words, fails=fails)


def settings(directory: Path) -> dict[str, str]:
    """All that holds a secret, or names a file that does."""
    users = f'user_alice="{SECRETS["alice-plain"]}"'
    own = f'username="broker" password="{SECRETS["broker"]}"'
    return {
        f"{PREFIX}.plain.sasl.jaas.config": f"{PLAIN_MODULE} required {users};",
        f"{PREFIX}.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        f"{PREFIX}.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required {own};",
        f"{PREFIX}.oauthbearer.sasl.jaas.config": f"{OAUTHBEARER_MODULE} required;",
        f"{PREFIX}.ssl.keystore.location": str(directory / "broker.p12"),
        f"{PREFIX}.ssl.keystore.type": "PKCS12",
        f"{PREFIX}.ssl.keystore.password": SECRETS["key-store"],
        f"{PREFIX}.ssl.key.password": SECRETS["key-store"],
        "password.encoder.secret": SECRETS["encoder"],
        "delegation.token.secret.key": SECRETS["token-key"],
        "barnabas.zookeeper.digest": f"kafka:{SECRETS['digest']}",
        # Kafka has no such settings: a name that is mistyped is a secret all the same.
        "ssl.keystore.pasword": SECRETS["mistyped"],
        f"{PREFIX}.plain.sasl.jass.config": SECRETS["mistyped"],
    }


def openly(directory: Path, zookeeper: str) -> dict[str, str]:
    """The rest."""
    return {
        "broker.id": "0",
        "listeners": f"{LISTENER}://localhost:0",
        "inter.broker.listener.name": LISTENER,
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "sasl.oauthbearer.jwks.endpoint.url": (directory / "keys.json").as_uri(),
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "ssl.truststore.location": str(directory / "trust.pem"),
        "ssl.truststore.type": "PEM",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:broker;User:alice",
        "connection.failed.authentication.delay.ms": "1",
        "offsets.topic.replication.factor": "1",
        "barnabas.admin.listener": "127.0.0.1:0",
        "barnabas.admin.token.file": str(directory / "admin-tokens"),
        "zookeeper.connect": zookeeper,
        "zookeeper.set.acl": "true",
    }


def write_files(directory: Path) -> None:
    """Stores, keys, tokens, and the settings file."""
    authority = Certificate("authority")
    authority.write_trust(directory / "trust.pem")
    own = Certificate("broker", authority, host="localhost")
    own.write_pkcs12(directory / "broker.p12", SECRETS["key-store"])
    (directory / "keys.json").write_bytes(key_set(SIGNER))
    (directory / "admin-tokens").write_text(f"{SECRETS['admin-token']}\n")
    (directory / "client").mkdir()
    lines = [f"{name}={value}\n" for name, value in settings(directory).items()]
    (directory / "server.properties").write_text("".join(lines))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Supervised, as an image runs it, on a ZooKeeper that writes to files of its own."""
    directory = tmp_path_factory.mktemp("place")
    write_files(directory)
    command = [*ZOOKEEPER, "--data-dir", str(directory / "zookeeper"), "--port", "0"]
    log = directory / "zookeeper.log"
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as own:
        watch("ZooKeeper", own.pid, log)
        try:
            found = "zookeeper: "
            reported = wait_for("its address", log.read_text, until=lambda text: found in text,
                            within=START)  # fmt: skip
            connect = reported.partition(found)[2].split()[0]
            options = ("--config", str(directory / "server.properties"), "--supervised")
            broker = Barnabas(directory / "broker", openly(directory, connect), options=options)
            place = Place(directory, broker, connect, Leaks(dict(SECRETS)))
            user = ("--entity-type", "users", "--entity-name", "broker")
            digest = directory / "client" / "zookeeper.properties"
            digest.write_text(f"barnabas.zookeeper.digest=kafka:{SECRETS['digest']}\n")
            broker_user = f"SCRAM-SHA-512=[password={SECRETS['broker']}]"
            place.tool("kafka-configs", "--zookeeper", connect, "--zk-tls-config-file", str(digest),
                       *user, "--alter", "--add-config", broker_user)  # fmt: skip
            with broker:
                yield place
        finally:
            forget(own.pid)
            own.kill()


def refused(properties: dict[str, Any], place: Place) -> None:
    """A client with these gets nowhere; what it is told is searched."""
    reported: list[KafkaError] = []
    producer = Producer({**properties, "error_cb": reported.append})

    def codes() -> set[int]:
        producer.poll(0.1)
        return {error.code() for error in reported}

    failed = KafkaError._AUTHENTICATION
    wait_for("the refusal", codes, until=lambda found: failed in found)
    place.leaks.look("errors of clients", "\n".join(map(str, reported)))


def accepted(properties: dict[str, Any]) -> None:
    """A client with these is answered."""
    Producer(properties).list_topics(timeout=seconds(ANSWER))


def bearing(place: Place, token: str) -> dict[str, Any]:
    """The properties of a client with a token."""
    found = place.properties("OAUTHBEARER", "")
    return {**found, "oauth_cb": lambda _: (token, 4e9, "alice", {})}


def everything_logged(place: Place) -> None:
    """All levels, of all loggers."""
    place.configs("--alter", "--entity-type", "broker-loggers", "--entity-name", "0",
                        "--add-config", "root=DEBUG")  # fmt: skip


def clients_rightly_and_wrongly(place: Place) -> None:
    """Every mechanism, with what is right, wrong, and no message of the mechanism at all."""
    for mechanism in MECHANISMS[1:3]:
        place.configs("--alter", "--entity-type", "users", "--entity-name", "alice",
                            "--add-config",
                            f"{mechanism}=[password={SECRETS['alice-scram']}]")  # fmt: skip
    for mechanism in MECHANISMS[:3]:
        kind = "plain" if mechanism == "PLAIN" else "scram"
        accepted(place.properties(mechanism, SECRETS[f"alice-{kind}"]))
        refused(place.properties(mechanism, SECRETS["wrong-password"]), place)
        garbled(place, mechanism)
    good, foreign = SIGNER.token(aud=AUDIENCE), STRANGER.token(aud=AUDIENCE)
    for name, token in (("bearer token", good), ("foreign bearer token", foreign)):
        place.leaks.secrets |= {name: token, f"signature of the {name}": token.split(".")[2]}
    accepted(bearing(place, good))
    refused(bearing(place, foreign), place)
    garbled(place, "OAUTHBEARER")


class Tls(Wire):
    """A bare connection within TLS."""

    def __init__(self, address: str, authority: Path) -> None:
        super().__init__(address)
        context = ssl.create_default_context(cafile=str(authority))
        self._socket = context.wrap_socket(self._socket, server_hostname="localhost")


def garbled(place: Place, mechanism: str) -> None:
    """What a broken client sends: a message with a secret in it that the mechanism does not have.

    It may be long, and it may come without the request around it.
    """
    text = SECRETS["garbled"].encode()
    messages = (text, b"\0\0" + text, b"n,,n=alice,r=" + text, b"n,a=" + text,
                b"n,,\x01auth=Basic " + text + b"\x01\x01", text * 100)  # fmt: skip
    for message in messages:
        for raw in (False, True):
            with Tls(place.broker.bootstrap, place.directory / "trust.pem") as wire:
                asked = SaslHandshakeRequest(mechanism=mechanism)
                wire.ask(asked, SaslHandshakeResponse, int(not raw))
                request = SaslAuthenticateRequest(auth_bytes=message)
                framed = len(message).to_bytes(4) + message
                wire.send(framed if raw else frame(request, 2))
                try:
                    reported = wire.receive_frame()
                except (EOFError, ConnectionError):
                    continue
                # A challenge of SCRAM repeats what the client drew.
                if b"r=" not in message or b",s=" not in reported:
                    place.leaks.look("answers to what is no message", reported)


def changes_and_errors(place: Place) -> None:
    """Passwords, stores and login modules: changed, and changed to what cannot be."""
    user = ("--entity-type", "users", "--entity-name", "alice")
    changed = f"SCRAM-SHA-512=[password={SECRETS['alice-changed']}]"
    place.configs("--alter", *user, "--add-config", changed)
    refused(place.properties("SCRAM-SHA-512", SECRETS["alice-scram"]), place)
    accepted(place.properties("SCRAM-SHA-512", SECRETS["alice-changed"]))
    place.configs("--alter", *user, "--add-config",
                        f"SCRAM-SHA-1=[password={SECRETS['alice-changed']}]", fails=1)  # fmt: skip
    broker = ("--entity-type", "brokers", "--entity-name", "0")
    modules = (
        f'{PLAIN_MODULE} required user_alice="{SECRETS["jaas-cut-off"]}',
        f"{PLAIN_MODULE} {SECRETS['jaas-in-pieces']} required;",
        f"{SECRETS['jaas-in-pieces']} required;",
        f"{PLAIN_MODULE} required user_alice=a;{SECRETS['jaas-in-pieces']} b;",
        f"{PLAIN_MODULE} required {SECRETS['jaas-in-pieces']}",
        f"{PLAIN_MODULE} required password a={SECRETS['jaas-in-pieces']};",
    )
    changes = [
        (f"{PREFIX}.ssl.keystore.password", SECRETS["wrong-store"]),
        (f"{PREFIX}.ssl.keystore.key", SECRETS["key-in-settings"]),
        (f"{PREFIX}.ssl.truststore.password", SECRETS["wrong-store"]),
        ("ssl.keystore.password", SECRETS["wrong-store"]),
        ("delegation.token.secret.key", SECRETS["token-key"]),
        ("password.encoder.secret", SECRETS["encoder"]),
        *((f"{PREFIX}.plain.sasl.jaas.config", module) for module in modules),
    ]
    for name, value in changes:
        reported = alter(place, name, value)
        place.leaks.look("answers of AlterConfigs", reported)
    # One that is taken: it is kept encoded, and described without its value.
    alter(place, f"{PREFIX}.ssl.keystore.password", SECRETS["key-store"])
    place.configs("--alter", *broker, "--add-config",
                        f"{PREFIX}.ssl.keystore.password={SECRETS['key-store']}")  # fmt: skip
    make_delegation_token(place)


def alter(place: Place, name: str, value: str) -> str:
    """Set one setting of the broker; the reason, where it is refused."""
    admin = AdminClient(place.properties("SCRAM-SHA-512", SECRETS["broker"], "broker"))
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    of_one = ConfigResource(ResourceType.BROKER, "0", incremental_configs=[entry])
    (done,) = admin.incremental_alter_configs([of_one]).values()
    return str(done.exception(seconds(ANSWER)))


def make_delegation_token(place: Place) -> None:
    """Used rightly, and with another HMAC. Creating it shows it, which is what it is for."""
    reported = place.tool("barnabas", "tokens", "create", "--output", "json")
    made = json.loads(reported)
    place.leaks.secrets["HMAC of the delegation token"] = made["hmac"]
    place.tool("barnabas", "tokens", "list")
    wrong = ("--hmac", "AAAA" + made["hmac"][4:])
    place.tool("barnabas", "tokens", "renew", *wrong, fails=1)
    refused(place.properties("SCRAM-SHA-512", SECRETS["wrong-password"], made["token_id"]), place)


def ask_the_admin_port(place: Place) -> None:
    """Each path with the token, with a wrong one, and with one in the path."""
    admin: str = json.loads((place.broker.directory / "ready.json").read_text())["admin"]
    for token in (SECRETS["admin-token"], SECRETS["wrong-admin-token"]):
        for path in (*PATHS, f"/?token={token}"):
            request = Request(f"{admin}{path}", headers={"Authorization": f"Bearer {token}"})
            try:
                with urlopen(request, timeout=seconds(ANSWER)) as answer:
                    place.leaks.look(path.partition("=")[0], answer.read())
            except HTTPError as error:
                with closing(error):
                    place.leaks.look("errors of the admin port", error.read())


def describe(place: Place) -> None:
    """Whatever shows settings, users and tokens; and each answer in full."""
    every: Sequence[tuple[str, ...]] = (
        ("configs", "describe", "--entity-type", "brokers", "--entity-name", "0", "--all"),
        ("configs", "describe", "--entity-type", "brokers", "--output", "json"),
        *((noun, "describe") for noun in ("brokers", "log-dirs", "groups")),
        *((noun, "list") for noun in ("tokens", "acls", "quotas", "brokers")),
        ("cluster", "info"), ("cluster", "health"),
    )  # fmt: skip
    for words in every:
        place.tool("barnabas", *words, "--timeout", str(int(seconds(ANSWER))))
    place.configs("--describe", "--entity-type", "brokers", "--entity-default")
    for kind, name in (("brokers", "0"), ("users", "alice"), ("broker-loggers", "0")):
        entity = ("--entity-type", kind, "--entity-name", name)
        place.configs("--describe", *entity, *(("--all",) if kind == "brokers" else ()))
    admin = AdminClient(place.properties("SCRAM-SHA-512", SECRETS["broker"], "broker"))
    (done,) = admin.describe_configs([ConfigResource(ResourceType.BROKER, "0")]).values()
    for each in done.result(seconds(ANSWER)).values():
        values = [each.value, *(synonym.value for synonym in each.synonyms.values())]
        place.leaks.look("DescribeConfigs", f"{each.name}={values}")
    wrong = SECRETS["client-option"]
    place.tool("barnabas", "topics", "list", "-X", f"sasl.pasword={wrong}", fails=2)
    timeout = ("--timeout", str(ATTEMPT_S))
    place.tool("barnabas", "topics", "list", *timeout, password=wrong, user="alice", fails=1)


def dump(place: Place) -> None:
    """Threads and tasks, as `kill -3` shows them."""
    os.kill(place.broker.pid, signal.SIGQUIT)
    read = place.broker.log_file.read_text
    wait_for("the task dump", read, until=lambda text: END_OF_DUMP in text)


def starts_that_fail(place: Place) -> None:
    """The last words of brokers with stores, modules and digests that are of no use."""
    wrong = (
        (f"{PREFIX}.ssl.keystore.password", SECRETS["wrong-store"]),
        (f"{PREFIX}.ssl.keystore.key", SECRETS["key-in-settings"]),
        (f"{PREFIX}.plain.sasl.jaas.config", f"{PLAIN_MODULE} {SECRETS['jaas-in-pieces']};"),
        (f"{PREFIX}.plain.sasl.jaas.config", f"{SECRETS['jaas-in-pieces']} required;"),
        (f"{PREFIX}.plain.sasl.jaas.config", f"{PLAIN_MODULE} a='{SECRETS['jaas-cut-off']}"),
        ("barnabas.zookeeper.digest", SECRETS["digest"]),
    )
    for number, (name, value) in enumerate(wrong):
        directory = place.directory / f"failing-{number}"
        directory.mkdir()
        file = directory / "server.properties"
        changed = settings(place.directory) | {name: value}
        file.write_text("".join(f"{key}={it}\n" for key, it in changed.items()))
        given = openly(place.directory, place.zookeeper) | {"broker.id": "7"}
        failing = Barnabas(directory, given, options=("--config", str(file)))
        with pytest.raises(RuntimeError, match="did not start"):
            failing.start()
        place.leaks.look("last words", failing.log_file.read_text())


def test_no_secret_is_found(place: Place) -> None:
    """In logs, answers, what tools print, processes, and files of broker and ZooKeeper."""
    everything_logged(place)
    clients_rightly_and_wrongly(place)
    changes_and_errors(place)
    ask_the_admin_port(place)
    describe(place)
    dump(place)
    starts_that_fail(place)
    leaks = place.leaks
    assert leaks.look_at_processes(place.broker.pid) >= 2, "the supervisor is missing"
    leaks.look("ZooKeeper's log", (place.directory / "zookeeper.log").read_text())
    log = place.broker.log_file.read_text()
    assert " DEBUG " in log
    leaks.look_at_files(place.directory / "broker")
    leaks.look_at_files(place.directory / "zookeeper")
    assert not leaks.found, "\n".join(leaks.found)
    sources = ("cmdline", "environ", "/metrics", "DescribeConfigs", "last words",
               "broker/broker.log", "zookeeper/znodes.journal")  # fmt: skip
    assert all(leaks.searched[where] for where in sources)


@pytest.mark.parametrize("before", [b"", b"a", b"ab"])
def test_secrets_are_found_in_all_encodings(before: bytes) -> None:
    """In the forms in which a log or an answer could have it."""
    leaks = Leaks({"password": SECRETS["broker"]})
    hidden = before + SECRETS["broker"].encode() + b"more"
    for text in (hidden, hidden.hex(), base64.b64encode(hidden), base64.urlsafe_b64encode(hidden)):
        leaks.look("text", text)
    assert len(leaks.found) == 4
    leaks.look("another", b"nothing")
    assert len(leaks.found) == 4
