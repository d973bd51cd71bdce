"""The client side every command shares: where the broker is, how to reach it, how it fails.

librdkafka does the talking. What is added here is what its users miss on a command line: an answer
within a bounded time, one line instead of a log, and Java's client properties understood.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from barnabas_broker.cli import local_clusters
from barnabas_broker.cli.errors import CommandError, InputError
from barnabas_broker.cli.local_clusters import OPTION, VARIABLE, LocalClient
from barnabas_broker.cli.properties import TOKEN_AUTH, client_properties, parse_assignments
from barnabas_broker.cli.time_limits import Seconds

if TYPE_CHECKING:
    from confluent_kafka import KafkaError
    from confluent_kafka.admin import AdminClient, ClusterMetadata

DEFAULT_PORT = 9092
DEFAULT_ADDRESS = f"localhost:{DEFAULT_PORT}"
# Long enough for a busy broker, short enough that the command does not seem to hang.
DEFAULT_TIMEOUT_S = 30.0
CONNECT_TIMEOUT_S = 5.0
PORTS = 1 << 16
CONTROLLER_POLL_S = 0.2
# For the first answer; what ended the connection is known between two requests only.
FIRST_TIMEOUT_S = 1.0
PROBE_TIMEOUT_S = 2.0
PLAINTEXT = "PLAINTEXT"
PROTOCOLS = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"

Result = TypeVar("Result")
Command = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the broker is and how long to wait for it."""

    bootstrap: str
    timeout_s: float
    properties: Mapping[str, str] = field(default_factory=dict)
    remedy: str = ""
    """What to do where no broker can be reached, if more than the address is known of it."""
    local: LocalClient | None = None
    """The cluster of `barnabas local` that it was taken from."""

    def config(self, extra: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The client configuration; what the user gave wins over `extra`.

        InputError for a delegation token, which librdkafka would take for a user, and for a group
        without a name.
        """
        if TOKEN_AUTH in self.properties:
            raise InputError(
                'tokenauth="true": this command does not log in with a delegation token; '
                "acls, quotas, tokens, log-dirs and elect-leaders do"
            )
        config = {
            "bootstrap.servers": self.bootstrap,
            "client.id": "barnabas-cli",
            "log_level": 0,  # Failures reach the user as one line; `-X log_level=7` shows all.
            **(extra or {}),
            **self._properties(),
        }
        if config.get("group.id") == "":  # librdkafka's consumer aborts the process.
            raise InputError("the group (group.id) is empty; give it a name")
        return config

    def _properties(self) -> dict[str, Any]:
        """The user's, for librdkafka."""
        mechanism = self.properties.get("sasl.mechanism") or self.properties.get("sasl.mechanisms")
        if mechanism != "OAUTHBEARER":
            return dict(self.properties)
        # Late, for few commands want it.
        from barnabas_broker.cli.bearer import for_librdkafka

        return for_librdkafka(self.properties)

    def admin(self) -> tuple[AdminClient, ClusterMetadata]:
        """An admin client that has reached the cluster, and what it learnt of it."""
        from confluent_kafka.admin import AdminClient

        errors: list[KafkaError] = []
        config = self.config({"error_cb": errors.append})
        self.knock()
        with failures("the client configuration is refused", InputError):
            client = AdminClient(config)
        return client, self.metadata(client, errors)

    def metadata(
        self, client: Any, errors: list[KafkaError] | None = None, topic: str | None = None
    ) -> ClusterMetadata:
        """The cluster's metadata; `CommandError` when no broker answers within the timeout."""
        from confluent_kafka import KafkaException

        errors = [] if errors is None else errors
        give_up_at = time.monotonic() + self.timeout_s
        timeout_s = FIRST_TIMEOUT_S
        while True:
            left_s = max(give_up_at - time.monotonic(), 0.001)
            try:
                found: ClusterMetadata = client.list_topics(
                    topic=topic, timeout=min(timeout_s, left_s)
                )
            except KafkaException as error:
                self.explain()
                client.poll(0)  # Delivers the error callbacks, which know more than the exception.
                refusal = self._refusal(errors)
                if refusal or timeout_s >= left_s:
                    reason = refusal or (errors[0] if errors else error.args[0])
                    text = f"no Kafka broker answers at {self.bootstrap}: {describe(reason)}"
                    raise CommandError(f"{text}{self._hint(errors)}") from None
                timeout_s *= 2
            else:
                return found

    def explain(self) -> None:
        """Raise CommandError where a listener speaks something else than the client does.

        For a client that gets no answer, and would try again for as long as it is let.
        """
        # Late: it is for failures.
        from barnabas_broker.cli.listener_probe import advice, listener_at

        for address, (host, port) in self._addresses().items():
            listener = listener_at(host, port, min(PROBE_TIMEOUT_S, self.timeout_s))
            if listener is not None and (what := advice(listener, self.properties)):
                raise CommandError(f"{address} {what}")

    def explain_error(self, error: KafkaError) -> None:
        """The same, as the `error_cb` of a client that nothing else is asked of."""
        from confluent_kafka import KafkaError

        if error.code() in (KafkaError._ALL_BROKERS_DOWN, KafkaError._SSL):
            self.explain()

    def _refusal(self, errors: Sequence[KafkaError]) -> KafkaError | None:
        """An error that no waiting makes better, once every address may have had one."""
        from confluent_kafka import KafkaError

        final = (KafkaError._AUTHENTICATION, KafkaError._SSL)
        found = [error for error in errors if error.code() in final]
        return found[0] if len(found) >= len(self._addresses()) else None

    def _hint(self, errors: Sequence[KafkaError]) -> str:
        """What to do where something listens that closes connections without TLS and a login."""
        from confluent_kafka import KafkaError

        plain = self.properties.get("security.protocol", PLAINTEXT) == PLAINTEXT
        if not plain or not any(it.code() == KafkaError._ALL_BROKERS_DOWN for it in errors):
            return ""
        return (
            "; the port is open: it may want TLS or a password (--command-config),"
            " or belong to another program"
        )

    def order(
        self,
        client: AdminClient,
        names: Sequence[str],
        ask: Callable[[list[str]], Mapping[str, Future[Result]]],
    ) -> dict[str, Future[Result]]:
        """What became of orders that only the controller takes, by topic, once all are answered.

        A broker that does not know a new controller yet names the old one, which refuses. Java's
        AdminClient then looks for the controller again until its time is over; librdkafka leaves
        that to its caller. `ask` is called again with the topics that were refused so.
        """
        give_up_at = time.monotonic() + self.timeout_s
        pause = threading.Event()
        answers: dict[str, Future[Result]] = {}
        left = list(names)
        while True:
            asked = ask(left)
            # The client times out by itself; the second is for its answer to arrive here.
            futures.wait(asked.values(), self.timeout_s + 1)
            answers.update(asked)
            left = [name for name, future in asked.items() if _went_to_another_controller(future)]
            if not left or time.monotonic() > give_up_at:
                return answers
            pause.wait(CONTROLLER_POLL_S)
            self.metadata(client)  # It caches the controller.

    def wait(self, what: str, future: Future[Result]) -> Result:
        """The result of an admin operation; `CommandError` naming `what` when it failed."""
        with failures(what):
            # The client times out by itself; the second is for its answer to arrive here.
            return future.result(self.timeout_s + 1)

    def answer(self, future: Future[Result]) -> Result:
        """The same, where the broker's own words are the whole message."""
        from confluent_kafka import KafkaException

        try:
            return future.result(self.timeout_s + 1)
        except KafkaException as error:
            cause = error.args[0]
            raise CommandError(cause.str().removeprefix("Broker: "), code=cause.code()) from None
        except TimeoutError:
            raise CommandError("no answer in time") from None

    def knock(self) -> None:
        """Try the addresses once over plain TCP.

        librdkafka goes on trying for as long as it is let; a mistyped port should fail at once.
        """
        # Late: asyncio, which librdkafka's module loads by now, too.
        from barnabas_kafka.host_resolver import HostResolver

        resolver = HostResolver()
        timeout_s = min(CONNECT_TIMEOUT_S, self.timeout_s)
        refused = []
        for address, (host, port) in self._addresses().items():
            try:
                resolver.connect_blocking(host, port, timeout_s).close()
            except OSError as error:
                shown = address if address.endswith(f":{port}") else f"{address}:{port}"
                refused.append(f"{shown}: {error.strerror or error}")
            else:
                return
        remedy = f"; {self.remedy}" if self.remedy else ""
        raise CommandError(f"cannot reach a broker at {'; '.join(refused)}{remedy}")

    def _addresses(self) -> dict[str, tuple[str, int]]:
        """Host and port of each address as it was given; InputError naming all that are wrong."""
        found: dict[str, tuple[str, int]] = {}
        problems = []
        for each in self.bootstrap.split(","):
            address = each.strip()
            try:
                found[address] = _split_address(address)
            except InputError as error:
                problems.append(error.message)
        if problems:
            raise InputError("; ".join(problems))
        return found


def connection_options(command: Command) -> Command:
    """Add the options of a client command; it is called with `connection`."""

    @click.option(
        "-b",
        "--bootstrap-server",
        envvar="BARNABAS_BOOTSTRAP",
        default=DEFAULT_ADDRESS,
        show_default=True,
        show_envvar=True,
        help="host:port of one broker or several, separated by commas.",
    )
    @click.option(
        "--command-config",
        envvar="BARNABAS_COMMAND_CONFIG",
        show_envvar=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Client properties file (Java's names work).",
    )
    @click.option(
        OPTION,
        "local_cluster",
        envvar=VARIABLE,
        show_envvar=True,
        metavar="CLUSTER[/USER]",
        shell_complete=local_clusters.complete,
        help="A cluster of `barnabas local`, in place of both; as USER, or its admin.",
    )
    @click.option(
        "-X",
        "--client-property",
        "assignments",
        multiple=True,
        metavar="NAME=VALUE",
        help="One client property, over those of the file.",
    )
    @click.option(
        "--timeout",
        "timeout_s",
        type=Seconds(),
        default=DEFAULT_TIMEOUT_S,
        show_default=True,
        help="Seconds to wait for the broker.",
    )
    @functools.wraps(command)
    def with_connection(
        *args: Any,
        bootstrap_server: str,
        command_config: Path | None,
        local_cluster: str | None,
        assignments: tuple[str, ...],
        timeout_s: float,
        **kwargs: Any,
    ) -> Any:
        connection = chosen_connection(
            click.get_current_context().get_parameter_source,
            bootstrap=bootstrap_server,
            file=command_config,
            local=local_cluster,
            assignments=assignments,
            timeout_s=timeout_s,
        )
        return command(*args, connection=connection, **kwargs)

    return with_connection


Source = Callable[[str], ParameterSource | None]


def chosen_connection(
    source: Source,
    *,
    bootstrap: str,
    file: Path | None,
    local: str | None,
    assignments: Sequence[str],
    timeout_s: float,
) -> Connection:
    """What the values of the options mean together; `source` says where each is from.

    Raises InputError.
    """
    client = _local_client(local, source)
    chosen = client.properties if client else file
    properties = client_properties(chosen) if chosen else {}
    properties |= parse_assignments(assignments, "-X")
    protocol = properties.get("security.protocol", PLAINTEXT).upper()
    if (
        protocol.startswith("SASL")
        and not {"sasl.mechanism", "sasl.mechanisms"} & properties.keys()
    ):
        raise InputError(f"security.protocol={protocol}: set sasl.mechanism to {MECHANISMS}")
    in_file = properties.pop("bootstrap.servers", bootstrap)
    by_default = source("bootstrap_server") in (None, ParameterSource.DEFAULT)
    return Connection(
        in_file if by_default or client else bootstrap,
        timeout_s,
        properties,
        remedy=_remedy(client, guessed=by_default and chosen is None),
        local=client,
    )


def _local_client(given: str | None, source: Source) -> LocalClient | None:
    """What `--local` or its variable names; None where the command line names something else."""
    if given is None:
        return None
    own = source("local_cluster")
    typed = own is ParameterSource.COMMANDLINE
    others = {
        "bootstrap_server": ("--bootstrap-server", "BARNABAS_BOOTSTRAP"),
        "command_config": ("--command-config", "BARNABAS_COMMAND_CONFIG"),
    }
    if not typed and any(source(name) is ParameterSource.COMMANDLINE for name in others):
        return None
    for name, (option, variable) in others.items():
        if source(name) is own:
            pair = f"{OPTION} and {option}" if typed else f"{VARIABLE} and {variable}"
            raise InputError(f"{pair} both say which brokers: give one of them")
    return local_clusters.find(given)


def _remedy(local: LocalClient | None, *, guessed: bool) -> str:
    """What to do where no broker answers."""
    if local is not None:
        return f"`barnabas local status --name {local.cluster}` shows what runs of it"
    if guessed:
        return "`barnabas broker start` starts one there; -b or --local names another"
    return ""


@contextmanager
def failures(what: str, kind: type[CommandError] = CommandError) -> Iterator[None]:
    """Turn what the client library raises inside into `kind`, in words that start with `what`."""
    from confluent_kafka import KafkaException

    try:
        yield
    except KafkaException as error:
        cause = error.args[0]
        raise kind(f"{what}: {describe(cause)}", code=cause.code()) from None
    except TimeoutError:
        raise kind(f"{what}: no answer in time") from None
    except ValueError as error:  # How the library refuses an argument before sending anything.
        raise kind(f"{what}: {error}") from None


def describe(error: KafkaError) -> str:
    """The error in one line: the broker's sentence and the error's name in the protocol."""
    text = error.str().replace("Broker: ", "").replace("Local: ", "").rstrip(".")
    name = error.name().removeprefix("_")
    return text if error.code() < 0 else f"{text} ({name})"


def _went_to_another_controller(future: Future[Any]) -> bool:
    from confluent_kafka import KafkaError, KafkaException

    error = future.exception() if future.done() else None
    return isinstance(error, KafkaException) and error.args[0].code() == KafkaError.NOT_CONTROLLER


def _split_address(address: str) -> tuple[str, int]:
    """`host`, `host:port`, `[v6]:port` or `SCHEME://host:port` as host and port."""
    scheme, _, address = address.rpartition("://")
    if scheme and scheme.upper() not in PROTOCOLS:
        raise InputError(
            f"{scheme}://{address}: {scheme} is no protocol of Kafka's; give host:port"
        )
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, port = address, str(DEFAULT_PORT)
    if not host or not port.isdigit():
        raise InputError(f"{address!r} is not a host:port")
    if not 0 < int(port) < PORTS:
        raise InputError(f"{address!r}: port {port} is not between 1 and {PORTS - 1}")
    return host.strip("[]"), int(port)
