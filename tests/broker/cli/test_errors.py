"""How commands fail."""

import os
import subprocess
import sys

import pytest

from barnabas_broker.cli.errors import READER_LEFT, Attempts, CommandError, InputError
from barnabas_broker.testing import Broker
from tests.waiting import RUN, seconds


def test_several_failures_are_all_reported_and_the_last_is_raised(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Deleting three topics of which two are missing names both."""
    done = []
    with pytest.raises(CommandError, match="second"), Attempts() as attempts:  # noqa: PT012
        for name, error in (("a", "first"), ("b", None), ("c", "second")):
            with attempts.one():
                if error:
                    raise CommandError(error)
                done.append(name)
    assert done == ["b"]
    assert capsys.readouterr().err == "Error: first\n"


def test_a_brokers_message_is_one_line_without_terminal_escapes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It may hold names that clients have invented."""
    CommandError("no group \x1b[2Ja\nb").show()
    assert capsys.readouterr().err == "Error: no group \\x1b[2Ja b\n"


def test_a_forgiven_code_is_no_failure() -> None:
    """--if-exists: only the code that means "it is not there" is forgiven."""
    with Attempts() as attempts, attempts.one(forgive=3):
        raise CommandError("not there", code=3)
    with pytest.raises(CommandError), Attempts() as attempts, attempts.one(forgive=3):
        raise CommandError("not allowed", code=29)
    with pytest.raises(CommandError), Attempts() as attempts, attempts.one(forgive=None):
        raise CommandError("no code, and None is not a code")


def test_another_error_is_not_hidden_by_collected_ones() -> None:
    """A bug inside the block surfaces as itself."""
    with pytest.raises(ZeroDivisionError), Attempts() as attempts:  # noqa: PT012
        with attempts.one():
            raise CommandError("collected")
        raise ZeroDivisionError


def test_an_error_is_one_line_and_its_class_is_the_exit_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Scripts read one line; a broker's message with line breaks does not change that."""
    CommandError("no such\n  topic").show()
    assert capsys.readouterr().err == "Error: no such topic\n"
    assert (CommandError("x").exit_code, InputError("x").exit_code) == (1, 2)


@pytest.mark.parametrize(
    "args",
    [
        ["topics", "list"],
        ["topics", "describe"],
        ["configs", "describe", "--entity-type", "brokers", "--all"],
        ["brokers", "list", "--output", "json"],
        ["version"],
        ["--help"],
    ],
)
def test_a_closed_output_pipe_ends_the_command_quietly(
    kafka_broker: Broker, kafka_topic: str, args: list[str]
) -> None:
    """`barnabas … | head -0` ends quietly, with the exit code of a program that SIGPIPE ends."""
    reading, writing = os.pipe()
    os.close(reading)
    environment = {**os.environ, "BARNABAS_BOOTSTRAP": kafka_broker.bootstrap_servers}
    command = [sys.executable, "-m", "barnabas_broker.cli", *args]
    done = subprocess.run(
        command, stdout=writing, stderr=subprocess.PIPE, env=environment, timeout=seconds(RUN),
        check=False,
    )  # fmt: skip
    os.close(writing)
    assert (done.returncode, done.stderr) == (READER_LEFT, b"")


@pytest.mark.parametrize("words", [["--list"], ["--help"]])
def test_a_closed_output_pipe_ends_a_kafka_tool_quietly(
    kafka_broker: Broker, kafka_topic: str, words: list[str]
) -> None:
    """The same."""
    reading, writing = os.pipe()
    os.close(reading)
    code = "from barnabas_broker.cli.kafka.topics import main; main()"
    command = [sys.executable, "-c", code, *words, "--bootstrap-server"]
    done = subprocess.run(
        [*command, kafka_broker.bootstrap_servers], stdout=writing, stderr=subprocess.PIPE,
        timeout=seconds(RUN), check=False,
    )  # fmt: skip
    os.close(writing)
    assert (done.returncode, done.stderr) == (READER_LEFT, b"")
