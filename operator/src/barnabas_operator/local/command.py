"""The command line of `barnabas local`.

Nothing here imports the Kafka client before it is needed: the overview of `barnabas` shows this
command, and a mistake in a file is reported at once.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

if TYPE_CHECKING:
    from barnabas_operator.local.documents import Manifest
    from barnabas_operator.local.state import StateDirectory
    from barnabas_operator.local.view import View

DEFAULT_TIMEOUT_S: Final = 120.0
WATCH_S: Final = 0.2
RESTARTS_MAX: Final = 5
RESTARTS_WITHIN_S: Final = 300.0
"""What ends more often than that within that time would end again."""

Command = Callable[..., None]


class CommandError(click.ClickException):
    """It was tried and failed: exit code 1."""


class UsageError(CommandError):
    """The file or an option is wrong and nothing was tried: exit code 2."""

    exit_code = 2


@contextmanager
def _reporting_errors() -> Iterator[None]:
    """Turn our own errors into lines and exit codes."""
    from barnabas_operator.local.documents import ManifestError
    from barnabas_operator.local.state import LocalError

    try:
        yield
    except ManifestError as error:
        raise UsageError("\n       ".join(error.problems)) from None
    except LocalError as error:
        raise CommandError(str(error)) from None
    except OSError as error:  # Of a full disk, or of what is another user's.
        raise CommandError(_of_file(error)) from None


def _of_file(error: OSError) -> str:
    text = error.strerror or str(error)
    return f"{error.filename}: {text}" if error.filename else text


def _manifest(required: bool) -> Callable[[Command], Command]:
    """FILE, which may be standard input, and -f before it, as kubectl has it."""

    def decorate(command: Command) -> Command:
        command = click.option("-f", is_flag=True, expose_value=False, hidden=True)(command)
        kind = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
        return click.argument("file", type=kind, required=required)(command)

    return decorate


def _place(command: Command) -> Command:
    """The options that say which cluster."""
    command = click.option(
        "--dir",
        "directory",
        type=click.Path(file_okay=False, path_type=Path),
        help="Its state directory, in place of $XDG_STATE_HOME/barnabas/NAME.",
    )(command)
    return click.option("--name", help="Which KafkaCluster, where there are several.")(command)


def _timeout(command: Command) -> Command:
    return click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0, min_open=True),
        default=DEFAULT_TIMEOUT_S,
        show_default=True,
        help="Seconds to wait.",
    )(command)


def _output(plain: str) -> Callable[[Command], Command]:
    return click.option(
        "-o",
        "--output",
        type=click.Choice([plain, "json", "yaml"]),
        default=plain,
        show_default=True,
        help=f"{plain} for people, JSON or YAML for programs.",
    )


@click.group(epilog="More: docs/tasks/local.md.")
def local() -> None:
    """Run custom resources on this machine, without Kubernetes."""


@local.command()
@_manifest(required=True)
@_place
@click.option(
    "--detach/--foreground",
    default=True,
    show_default=True,
    help="Come back when everything is Ready, or stay until Ctrl-C and stop it then.",
)
@click.option(
    "--secure", is_flag=True, help="Secure what FILE leaves plain: TLS, passwords and ACLs."
)
@click.option("--replace", is_flag=True, help="Take the place of the file used before.")
@click.option("--repair", is_flag=True, help="Write a damaged cluster.json again; ports stay.")
@click.option("--restart", is_flag=True, help="With --foreground: start again what ends by itself.")
@_output("text")
@_timeout
def up(
    file: Path,
    name: str | None,
    directory: Path | None,
    detach: bool,
    secure: bool,
    replace: bool,
    repair: bool,
    restart: bool,
    output: str,
    timeout_s: float,
) -> None:
    """Bring up the KafkaCluster of FILE with its topics and pipelines; - is standard input.

    Brokers on 127.0.0.1, on the ports of the resource if they are free. Run it again after a
    change: only what is different is done, and a restart says why. Ctrl-C before all is Ready ends
    what it has started.

    Exit codes: 0 all is Ready, 1 something is not, 2 the file or an option is wrong. A pipeline
    that cannot run because Spark is not installed is reported, and is no failure.
    """
    from barnabas_operator.local.documents import STDIN
    from barnabas_operator.local.up import up as bring_up

    if restart and detach:
        raise UsageError("--restart goes with --foreground: a process must watch to start it again")
    with _reporting_errors():
        manifest = _read(file, name, directory, secure=secure)
        cluster = manifest.cluster.meta.name
        _check_broker_installed()
        state = _state(directory, cluster)
        say = functools.partial(_say, cluster, err=output != "text")
        for note in manifest.notes:
            say(note)
        source = file if file == STDIN else file.resolve()
        before = _Before.of(state)
        try:
            with _signals_interrupt():
                bring = functools.partial(
                    bring_up, manifest, source, state, say=say, timeout_s=timeout_s
                )
                seen = bring(replace=replace, repair=repair)
                failed = _summary(seen, say)
                if output != "text":
                    click.echo(_document({"clusters": [seen.as_json()]}, output))
                if not detach:
                    _watch(state, say, timeout_s, Restarts(bring) if restart else None)
        except KeyboardInterrupt:
            if not detach:
                _stop(state, say, timeout_s)
                return
            before.restore(say, timeout_s)
            raise
    if failed:
        raise SystemExit(1)


@local.command()
@_manifest(required=False)
@_place
@_output("table")
def status(file: Path | None, name: str | None, directory: Path | None, output: str) -> None:
    """Show what runs: of FILE, of --name or --dir, or of all clusters on this machine."""
    from barnabas_operator.local import tables
    from barnabas_operator.local.documents import ManifestError
    from barnabas_operator.local.state import LocalError
    from barnabas_operator.local.view import look

    with _reporting_errors():
        views = []
        troubles: dict[Path, str] = {}
        for state in _chosen(file, name, directory, all_of_them=True):
            try:
                record = state.load()
                if record is not None:
                    views.append(look(record, state))
            # The others are to be seen all the same.
            except (LocalError, ManifestError) as error:
                troubles[state.path] = str(error)
            except OSError as error:
                troubles[state.path] = _of_file(error)
    if output != "table":
        unreadable = [
            {"name": path.name, "directory": str(path), "ready": False, "error": text}
            for path, text in troubles.items()
        ]
        click.echo(_document({"clusters": [*(it.as_json() for it in views), *unreadable]}, output))
    elif not views and not troubles:
        click.echo("No cluster is known here; `barnabas local up FILE` starts one.")
    else:
        for view in views:
            tables.show(view)
    for path, text in troubles.items():
        click.echo(f"Error: {path.name}: {text}", err=True)
    if troubles:
        raise SystemExit(1)


@local.command()
@_manifest(required=False)
@_place
@click.option("--delete-data", is_flag=True, help="Delete records, checkpoints and all.")
@_output("text")
@_timeout
def down(
    file: Path | None,
    name: str | None,
    directory: Path | None,
    delete_data: bool,
    output: str,
    timeout_s: float,
) -> None:
    """Stop a cluster and its pipelines; the data stay unless --delete-data is given."""
    from barnabas_operator.local.state import DamagedError

    stopped = []
    with _reporting_errors():
        for state in _chosen(file, name, directory, all_of_them=False):
            try:
                record = state.load()
            except DamagedError:
                called = state.path.name
            else:
                if record is None:
                    click.echo(f"Nothing is known of a cluster in {state.path}.", err=True)
                    continue
                called = record.cluster
            say = functools.partial(_say, called, err=output != "text")
            _stop(state, say, timeout_s, delete_data=delete_data)
            stopped.append({"name": called, "directory": str(state.path), "deleted": delete_data})
    if output != "text":
        click.echo(_document({"clusters": stopped}, output))


# --- which cluster --------------------------------------------------------------------------------


def _state(directory: Path | None, cluster: str) -> StateDirectory:
    from barnabas_operator.local.state import StateDirectory, root

    return StateDirectory(directory.resolve() if directory else root() / cluster)


def _read(
    file: Path, name: str | None, directory: Path | None, *, secure: bool = False
) -> Manifest:
    """The cluster of a file, secured or not as it was created."""
    from barnabas_operator.api.clusters import Security
    from barnabas_operator.local import documents, repair

    def recorded(cluster: str) -> Security | None:
        # Of several clusters of a file, --dir is that of the one that is named.
        place = directory if name in (None, cluster) else None
        return repair.recorded_security(_state(place, cluster))

    return documents.read_file(file, name=name, recorded=recorded, secure=secure)


def _chosen(
    file: Path | None, name: str | None, directory: Path | None, *, all_of_them: bool
) -> Sequence[StateDirectory]:
    """The state directories that are meant; raises UsageError where that is not clear."""
    from barnabas_operator.local.state import known_clusters

    if directory is not None:
        return [_state(directory, "")]
    if file is not None:
        return [_state(None, _read(file, name, None).cluster.meta.name)]
    known = known_clusters()
    if name is not None and name not in known:
        text = f"there is {', '.join(known)}" if known else "there is none"
        raise UsageError(f"no cluster {name} is known here; {text}")
    if name is None and len(known) > 1 and not all_of_them:
        raise UsageError(f"there are several clusters ({', '.join(known)}): choose with --name")
    chosen = known if name is None else [name]
    if not chosen and not all_of_them:
        click.echo("No cluster is known here.", err=True)
    return [_state(None, each) for each in chosen]


def _document(content: object, output: str) -> str:
    """JSON, or YAML of the same."""
    text = json.dumps(content, indent=2)
    if output == "json":
        return text
    import yaml

    return yaml.safe_dump(json.loads(text), sort_keys=False).rstrip()


def _check_broker_installed() -> None:
    if importlib.util.find_spec("barnabas_broker") is None:
        raise CommandError(
            "there is no broker to run here: install all of Barnabas (`make install` in a clone)"
        )


# --- reporting and waiting ------------------------------------------------------------------------


def _say(cluster: str, text: str, *, err: bool = False) -> None:
    click.echo(f"{cluster}: {text}", err=err)


def _summary(view: View, say: Callable[[str], None]) -> bool:
    """Print where the cluster is and what is not Ready; whether that is a failure."""
    from barnabas_operator.api.conditions import READY
    from barnabas_operator.local import processes

    failed = not view.ready
    for resource, found in view.conditions().items():
        for each in found:
            if each.type == READY and each.status != "True":
                click.echo(f"{resource} is not Ready: {each.reason}: {each.message}", err=True)
    where = ", ".join(f"{each.name} {each.bootstrap_servers}" for each in view.status.listeners)
    say(where)
    for warning in (each.message for each in view.status.conditions if each.type == "Warning"):
        say(warning)
    for name, user in view.users.items():
        say(f"user {name}: {user.command}")
    if not failed:
        age = processes.age_s()
        after = "" if age is None else f" after {age:.1f} s"
        say(f"Ready{after}; its files are in {view.directory}")
    return failed


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    """SIGTERM, and the end of the terminal, are as good as Ctrl-C here."""

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt(number)

    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, interrupt) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


@dataclass(frozen=True, slots=True)
class _Before:
    """What there was of a cluster before a command that may be interrupted."""

    state: StateDirectory
    existed: bool
    ran: bool

    @classmethod
    def of(cls, state: StateDirectory) -> _Before:
        """As it is now."""
        from barnabas_operator.local.state import DamagedError
        from barnabas_operator.local.watching import watched

        existed = state.path.exists()
        try:
            record = state.load()
        except DamagedError:
            return cls(state, existed, ran=True)
        processes = [] if record is None else watched(record, state)
        return cls(state, existed, ran=any(each.running for each in processes))

    def restore(self, say: Callable[[str], None], timeout_s: float) -> None:
        """Leave nothing that was not there; what ran then is left running."""
        if self.ran:
            say("interrupted: what ran before still runs; the same command completes the change")
        elif self.state.path.exists():
            say("interrupted: stopping what was started")
            _stop(self.state, say, timeout_s, delete_data=not self.existed)


class Restarts:
    """Starts again what ended by itself, unless that is for nothing."""

    def __init__(self, bring_up: Callable[[], object]) -> None:
        self._bring_up = bring_up
        self._times: deque[float] = deque(maxlen=RESTARTS_MAX)

    def allowed(self) -> bool:
        """Whether there were not too many lately."""
        return len(self._times) < RESTARTS_MAX or (
            time.monotonic() - self._times[0] > RESTARTS_WITHIN_S
        )

    def start_again(self) -> None:
        """Start what does not run; raises LocalError where it cannot be."""
        self._times.append(time.monotonic())
        self._bring_up()


def _watch(
    state: StateDirectory,
    say: Callable[[str], None],
    timeout_s: float,
    restarts: Restarts | None = None,
) -> None:
    """Stay while the cluster runs.

    Where one of its processes ends by itself, it is started again, or without `restarts` the rest
    is ended and LocalError raised.
    """
    from barnabas_operator.local.state import BusyError, LocalError

    say("Ctrl-C stops it")
    while True:
        time.sleep(WATCH_S)
        try:
            ended = _ended(state)
            if ended:
                with state.held():
                    ended = _ended(state)
        except BusyError:
            continue  # Another command has stopped it, or is restarting it.
        if ended is None:
            say("it was stopped by another command")
            return
        if ended and restarts is not None and restarts.allowed():
            say(f"{ended}; starting it again")
            try:
                restarts.start_again()
            except BusyError:
                continue  # Another command is at it.
            except LocalError:
                _stop(state, say, timeout_s)
                raise
        elif ended:
            _stop(state, say, timeout_s)
            raise LocalError(ended)


def _ended(state: StateDirectory) -> str | None:
    """What ended by itself, and its last words; None where all were stopped on purpose."""
    from barnabas_operator.local.watching import watched

    record = state.load()
    found = [] if record is None else watched(record, state)
    ended = next((text for each in found if (text := each.end())), "")
    return ended if ended or not all(each.stopped for each in found) else None


def _stop(state: StateDirectory, say: Callable[[str], None], timeout_s: float, **how: Any) -> None:
    from barnabas_operator.local.down import down as take_down

    take_down(state, say=say, timeout_s=timeout_s, **how)
