"""Programs that share a JVM behave as in a JVM of their own and see nothing of each other."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.oracle.apache import classpath
from tests.oracle.java_host import FLAGS, JavaError, JavaHost, compiled

pytestmark = pytest.mark.jvm

PROGRAM: Final = str(Path(__file__).parent / "java" / "Behaving.java")


@pytest.fixture(scope="module")
def host() -> Iterator[JavaHost]:
    """A JVM of this module's own."""
    with_no_jars = JavaHost("")
    yield with_no_jars
    with_no_jars.close()


def test_streams_are_separate_and_input_ends(host: JavaHost) -> None:
    """The program reads the given text and no more; what it prints comes back by stream."""
    done = host.run(PROGRAM, "echo", input="one\ntwo\n")
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "out one\nout two\n",
        "err one\nerr two\n",
    )
    assert host.run(PROGRAM, "echo").stdout == ""


def test_arguments_arrive_as_given(host: JavaHost) -> None:
    """Empty ones, spaces and quotes too: no shell is between."""
    words = ["", "a b", '"quoted"', "line\nline", "x" * 100_000]
    assert host.run(PROGRAM, "arguments", *words).stdout == "|".join(["arguments", *words]) + "\n"


@pytest.mark.parametrize("code", [0, 1, 255])
def test_exit_ends_the_program_and_not_the_jvm(host: JavaHost, code: int) -> None:
    """The first call counts, shutdown hooks run, and nothing is printed after it."""
    host.run(PROGRAM, "echo")
    pid = host.pid
    done = host.run(PROGRAM, "exit", str(code))
    assert (done.returncode, done.stdout) == (code, "before\nhook\n")
    assert host.pid == pid


def test_exits_have_the_same_result_where_java_cannot_intercept_them() -> None:
    """As from Java 18 on: then the JVM ends with the program, and the next one runs in another."""
    host = JavaHost("", (*FLAGS, "-Djava.security.manager=disallow"))
    done = host.run(PROGRAM, "exit", "3")
    assert (done.returncode, done.stdout) == (3, "before\nhook\n")
    assert host.run(PROGRAM, "arguments").stdout == "arguments\n"
    host.close()


def test_kafkas_own_exits_are_intercepted_in_every_java() -> None:
    """Kafka's tools end through a class of Kafka's, which can be given another procedure."""
    host = JavaHost(classpath(), (*FLAGS, "-Djava.security.manager=disallow"))
    tool = "org.apache.kafka.tools.TopicCommand"
    results = []
    for _ in range(2):
        done = host.run(tool, "--bootstrap-server", "127.0.0.1:1", "--unknown")
        assert "unknown is not a recognized option" in done.stderr
        results.append((host.pid, done.returncode))
    host.close()
    assert results[0] == results[1]
    assert results[0][0] is not None


def test_an_exception_is_exit_code_1_with_the_stack_on_stderr(host: JavaHost) -> None:
    """As `java` prints it."""
    done = host.run(PROGRAM, "throw")
    assert (done.returncode, done.stdout) == (1, "")
    first, *stack = done.stderr.splitlines()
    assert first == 'Exception in thread "main" java.lang.IllegalStateException: on purpose'
    assert stack[0].startswith("\tat Behaving.main(")


def test_an_unknown_class_is_an_error_of_the_program(host: JavaHost) -> None:
    """Tools move between releases; the name of the class is in the error."""
    done = host.run("org.example.Missing")
    assert done.returncode == 1
    assert "ClassNotFoundException: org.example.Missing" in done.stderr


def test_state_does_not_outlive_a_program(host: JavaHost) -> None:
    """Static fields and system properties are those of a new JVM, in the same one."""
    first = host.run(PROGRAM, "state")
    pid = host.pid
    second = host.run(PROGRAM, "state")
    assert first.stdout == second.stdout == "1 unset\n"
    assert host.pid == pid


def test_threads_that_are_no_daemons_are_waited_for(host: JavaHost) -> None:
    """The program ends with the last of them, as in a JVM of its own."""
    assert host.run(PROGRAM, "worker").stdout == "worked\n"


def test_a_client_that_is_not_closed_is_closed_for_the_next_program(host: JavaHost) -> None:
    """Some of Kafka's tools leave their Admin to the end of the JVM."""
    host.run(PROGRAM, "echo")
    pid = host.pid
    assert host.run(PROGRAM, "forget").returncode == 0
    assert host.pid == pid


@pytest.mark.parametrize("threads", ["chatter", "pool"])
def test_threads_left_behind_end_with_their_jvm(host: JavaHost, threads: str) -> None:
    """What they print is not taken for output of the next program."""
    left = host.run(PROGRAM, threads)
    assert left.returncode == 0
    assert host.pid is None
    assert host.run(PROGRAM, "arguments").stdout == "arguments\n"


def test_a_program_that_hangs_is_killed_at_its_deadline(host: JavaHost) -> None:
    """With what it printed until then in the error; the next program runs."""
    host.run(PROGRAM, "echo")
    pid = host.pid
    assert pid is not None
    with pytest.raises(subprocess.TimeoutExpired) as raised:
        host.run(PROGRAM, "hang", within=1 / 2)
    assert raised.value.stdout in (b"", b"about to hang\n")
    assert not psutil.pid_exists(pid)
    assert host.run(PROGRAM, "arguments").stdout == "arguments\n"


def test_the_death_of_the_jvm_is_the_program_s_exit_code(host: JavaHost) -> None:
    """A signal's number, negative, as of any process; the next program runs."""
    done = host.run(PROGRAM, "die")
    assert (done.returncode, done.stdout) == (-9, "about to die\n")
    assert host.run(PROGRAM, "arguments").stdout == "arguments\n"


def test_a_closed_host_leaves_no_process(host: JavaHost) -> None:
    """Its JVM ends when its input does, so that a killed test run leaves none either."""
    host.run(PROGRAM, "echo")
    pid = host.pid
    assert pid is not None
    host.close()
    assert not psutil.pid_exists(pid)


def test_a_source_that_does_not_compile_says_why(tmp_path: Path) -> None:
    """The compiler's message is in the error."""
    source = tmp_path / "Broken.java"
    source.write_text("class Broken { int number = true; }\n")
    with pytest.raises(JavaError, match="incompatible types"):
        compiled(source)
