"""The command line: `barnabas pipeline run FILE`, and `python -m barnabas_pipelines` in a pod.

Nothing here imports Spark: the overview of `barnabas` shows this command on every machine.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from barnabas_pipelines.errors import PipelineError, SpecError

BOOTSTRAP_VARIABLE: Final = "BARNABAS_BOOTSTRAP"
USER_VARIABLE: Final = "BARNABAS_KAFKA_USER"
PYTHON_VARIABLE: Final = "BARNABAS_PIPELINE_PYTHON"
# Where `make spark` puts pyspark, beside the environment that does without.
SPARK_ENVIRONMENT: Final = ".venv-spark"


class CommandError(click.ClickException):
    """One line on standard error; exit code 1."""


class UsageError(CommandError):
    """The same for a wrong file or option; exit code 2."""

    exit_code = 2


@click.command("jars")
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    help="The directory for them; else the user's cache.",
)
def fetch_jars(into: Path | None) -> None:
    """Fetch the jars of Spark's Kafka connector, and hold them to their checksums."""
    from barnabas_pipelines import jars

    with _errors_in_one_line():
        directory = into or jars.default_directory()
        for path in jars.fetch(directory, jars.locked(), source=jars.repository()):
            click.echo(path)


@click.command()
def selftest() -> None:
    """Start Spark, load the connector, write and read a file: what an image must be able to."""
    from barnabas_pipelines import selftest as test

    with _errors_in_one_line():
        click.echo(test.run())


def pipeline_group(*, data: str, status: str, wait_s: float) -> click.Group:
    """The commands, with the defaults of a place: a person's directory, or a pod."""
    settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
    text = "Run pipelines from topics to files, on Spark."
    commands = [_run_command(data=data, status=status, wait_s=wait_s), fetch_jars, selftest]
    return click.Group("pipeline", commands=commands, help=text, context_settings=settings)


def _run_command(*, data: str, status: str, wait_s: float) -> click.Command:
    @click.command()
    @click.argument("file", type=click.Path(path_type=Path))
    @click.option("--name", help="Which pipeline, where FILE has several.")
    @click.option("-b", "--bootstrap", envvar=BOOTSTRAP_VARIABLE, help="The brokers, as host:port.")
    @click.option(
        "--kafka-user",
        type=click.Path(path_type=Path),
        envvar=USER_VARIABLE,
        metavar="DIR",
        help="Directory with the keys of a KafkaUser's Secret: credentials and bootstrap servers.",
    )
    @click.option(
        "--data",
        default=data,
        show_default=True,
        type=click.Path(path_type=Path),
        envvar="BARNABAS_PIPELINE_DATA",
        help="The directory that stands for /data.",
    )
    @click.option(
        "--status",
        default=status,
        show_default=True,
        metavar="HOST:PORT",
        help="Where to serve /status; port 0 takes a free one.",
    )
    @click.option("--once", is_flag=True, help="End with what is there now, instead of going on.")
    @click.option(
        "--wait",
        default=wait_s,
        show_default=True,
        metavar="SECONDS",
        type=click.FloatRange(min=0),
        help="How long brokers, topics and access to them may take to appear; inf: for ever.",
    )
    @click.option("-v", "--verbose", is_flag=True, help="Say more.")
    def run(file: Path, verbose: bool, **options: Any) -> None:
        """Run the KafkaPipeline of FILE, a YAML file; other documents in it are passed over.

        Each record of its topics is written to Parquet files once, in order of batches. The
        pipeline goes on where it was when it is started again. SIGTERM and Ctrl-C end it between
        two batches.

        Exit codes: 0 done or stopped, 1 it failed, 2 the file or an option is wrong.
        """  # fmt: skip
        logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
        logging.getLogger("barnabas_pipelines").setLevel("DEBUG" if verbose else "INFO")
        with _errors_in_one_line():
            _run(file, verbose=verbose, **options)

    return run


@contextmanager
def _errors_in_one_line() -> Iterator[None]:
    try:
        yield
    except SpecError as error:
        raise UsageError(str(error)) from None
    except PipelineError as error:
        raise CommandError(str(error)) from None


def _run(file: Path, *, verbose: bool, name: str | None, **options: Any) -> None:
    from barnabas_pipelines import runner, session, spec
    from barnabas_pipelines.connection import Connection, UserFiles
    from barnabas_pipelines.volume import Volume

    wanted = spec.read(file, name=name)
    directory = options["kafka_user"]
    if wanted.user and directory is None:
        text = f"spec.user: give the files of the Secret of KafkaUser {wanted.user}"
        raise SpecError(f"{text} with --kafka-user or {USER_VARIABLE}")
    connection = Connection(
        bootstrap=options["bootstrap"] or wanted.bootstrap,
        user=UserFiles(directory.absolute()) if directory else None,
    )
    if not connection.properties()["bootstrap.servers"]:
        text = (
            f"which brokers? --bootstrap host:port, {BOOTSTRAP_VARIABLE} or spec.bootstrapServers"
        )
        raise SpecError(text)
    address = status_address(options["status"])
    python = spark_python()
    if python is not None:
        arguments = [str(file), "--status", options["status"]]
        arguments += ["--bootstrap", connection.bootstrap] if connection.bootstrap else []
        arguments += ["--kafka-user", str(directory)] if directory else []
        arguments += ["--data", str(options["data"]), "--wait", str(options["wait"])]
        arguments += ["--name", wanted.name, *["--once"] * options["once"], *["-v"] * verbose]
        command = [str(python), "-P", "-m", "barnabas_pipelines", "run", *arguments]
        os.execv(command[0], command)  # noqa: S606 - our own module, in the environment that has Spark
    runner.run(
        runner.Options(
            spec=wanted,
            connection=connection,
            volume=Volume(options["data"].absolute()),
            master=os.environ.get(session.MASTER_VARIABLE) or wanted.master,
            status_address=address,
            once=options["once"],
            wait_s=options["wait"],
        )
    )


def spark_python() -> Path | None:
    """Another Python that has pyspark, where this one has not and one is known."""
    if importlib.util.find_spec("pyspark") is not None:
        return None
    named = os.environ.get(PYTHON_VARIABLE)
    python = Path(named) if named else Path(sys.prefix).with_name(SPARK_ENVIRONMENT) / "bin/python"
    if named and not python.exists():
        raise PipelineError(f"{PYTHON_VARIABLE} names {python}, which does not exist")
    return python if python.exists() else None


def status_address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`; raises SpecError."""
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65_535:
        raise SpecError(f"--status {text!r} is not HOST:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)


# As a person runs it; `__main__` has it as a pod does.
pipeline = pipeline_group(data="data", status="127.0.0.1:0", wait_s=0)
