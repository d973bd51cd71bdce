"""Runs one pipeline from start to end: checks, session, query, status, a clean end on SIGTERM.

A query keeps the clients, and with them the login, that it began with. So it is started again, in
the same process and between two batches, when the Secret of the pipeline's user has changed and the
brokers accept what is in it now; and when a client was refused or had no answer, once it has one.
"""

from __future__ import annotations

import json
import logging
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from barnabas_pipelines import checkpoint, session, sources
from barnabas_pipelines.batches import BatchDirectory
from barnabas_pipelines.connection import Connection
from barnabas_pipelines.errors import (
    AuthenticationError,
    AuthorizationError,
    NotReadyError,
    PipelineError,
)
from barnabas_pipelines.failures import explain, user_of
from barnabas_pipelines.jobs import archive
from barnabas_pipelines.sinks import ParquetSink
from barnabas_pipelines.spec import PipelineSpec
from barnabas_pipelines.status import Board, Phase, Status, after, served
from barnabas_pipelines.volume import Volume

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

LOG: Final = logging.getLogger(__name__)

RETRY_S: Final = 2.0
# Between two queries that ended for that; it doubles up to that as long as none writes a batch.
LONGEST_RETRY_S: Final = 60.0
POLL_S: Final = 0.5
# For the batch at work. The query and the session then have `session.STOP_TIMEOUT_S` each: a pod
# has 60 s together.
STOP_GRACE_S: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run a pipeline."""

    spec: PipelineSpec
    connection: Connection
    volume: Volume
    master: str
    status_address: tuple[str, int] | None = None
    once: bool = False
    wait_s: float = 0.0  # How long brokers, topics and access to them may take to appear.


def run(options: Options) -> None:
    """Run the pipeline until it is stopped, or with `once` until it has everything.

    Raises PipelineError with what went wrong; it is in the status too by then.
    """
    session.check_installed()
    sources.addresses(options.connection.servers())
    with options.volume.held(options.spec), ExitStack() as stack:
        board = Board(options.volume.status, Status(name=options.spec.name))
        board.phase(Phase.STARTING)
        if options.status_address is not None:
            where = stack.enter_context(served(board, options.status_address))
            LOG.info("status at http://%s:%d/status", *where)
        try:
            Run(options, board).run()
        except PipelineError as error:
            board.phase(Phase.FAILED, str(error))
            raise


class Run:
    """One life of a pipeline."""

    def __init__(self, options: Options, board: Board) -> None:
        self._options = options
        self._spec = options.spec
        self._board = board
        self._stopping = threading.Event()
        # The Secret that the clients of the query were created with; why a newer one is not used,
        # and when that is looked at again.
        self._version: str | None = None
        self._unused = ""
        self._look_at = 0.0

    def run(self) -> None:
        """See `run` of the module."""
        options = self._options
        with self._signals():
            self._awaited(
                Phase.WAITING_FOR_BROKER,
                lambda: sources.await_broker(options.connection.servers()),
            )
            if self._stopping.is_set():
                self._board.phase(Phase.STOPPED)
                return
            spark = session.start(
                self._spec.name,
                master=options.master,
                work=options.volume.work,
                connector=session.connector_jars(),
            )
            try:
                # Spark took SIGINT for itself when it started.
                with self._signals():
                    self._run_on(spark)
            finally:
                session.stop(spark)

    def _run_on(self, spark: SparkSession) -> None:
        """Run queries, one after the other, until one has come to its end or is to be ended."""
        retry_s, waited_s = RETRY_S, 0.0
        while True:
            self._awaited(Phase.WAITING_FOR_TOPICS, lambda: self._check_access(spark))
            if self._stopping.is_set():
                self._board.phase(Phase.STOPPED)
                return
            before = self._board.status.batches
            try:
                if self._run_query(spark):
                    return
            except NotReadyError as error:
                if self._board.status.batches > before:
                    retry_s, waited_s = RETRY_S, 0.0
                if waited_s >= self._options.wait_s:
                    raise
                self._board.phase(_phase_of(error, Phase.WAITING_FOR_BROKER), str(error))
                LOG.warning("the query ended and is started again: %s", error)
                self._stopping.wait(retry_s)
                waited_s += retry_s
                retry_s = min(2 * retry_s, LONGEST_RETRY_S)

    def _check_access(self, spark: SparkSession) -> None:
        """Whether brokers let the pipeline read its topics; raises NotReadyError."""
        sources.await_topics(spark, self._options.connection.properties(), self._spec)

    def _run_query(self, spark: SparkSession) -> bool:
        """Run one query; whether it was the last. Raises PipelineError."""
        options, spec = self._options, self._spec
        sink = self._sink(spark)
        # Before the clients are created: a change from now on is noticed.
        self._version = options.connection.version()
        query = archive.start(
            spark,
            spec,
            sink,
            client=options.connection.properties(),
            checkpoint=options.volume.checkpoint(spec),
            once=options.once,
        )
        self._board.phase(Phase.RUNNING)
        LOG.info("%s: %s to %s", spec.name, ", ".join(spec.topics), options.volume.output(spec))
        finished = self._follow(query, sink, spark)
        again = not (finished or self._stopping.is_set())
        if not finished:
            self._end(query, sink, again=again)
        self._report(query)
        if again:
            LOG.info("the Secret of %s has changed: the query is started again", user_of(spec))
            return False
        self._board.phase(Phase.COMPLETED if finished else Phase.STOPPED)
        return True

    def _sink(self, spark: SparkSession) -> ParquetSink:
        """The output directory, claimed for the pipeline's checkpoint."""
        volume, spec = self._options.volume, self._spec
        directory = BatchDirectory(volume.output(spec), run=uuid.uuid4().hex)
        place = volume.checkpoint(spec)
        committed = checkpoint.committed(place)
        directory.claim(checkpoint.identity(place), committed=committed)
        if committed is not None:
            self._board.show(replace(self._board.status, last_batch_id=committed))
        cores = spark.sparkContext.defaultParallelism
        return ParquetSink(directory, checkpoint=place, files_per_batch=cores)

    def _follow(self, query: StreamingQuery, sink: ParquetSink, spark: SparkSession) -> bool:
        """Report until the query ends (True) or is to be ended (False); raises PipelineError."""
        from pyspark.errors import StreamingQueryException

        while not (self._stopping.is_set() or self._is_renewed(spark)):
            try:
                ended = query.awaitTermination(POLL_S)
            except StreamingQueryException as error:
                if sink.failure is not None:
                    raise self._of_sink(sink.failure) from error
                raise explain(str(error), self._spec) from error
            self._report(query)
            if ended:
                return True
        return False

    def _is_renewed(self, spark: SparkSession) -> bool:
        """Whether the Secret of the user has changed, and brokers accept what is in it now.

        Until they do the query goes on with the connections that it has.
        """
        version = self._options.connection.version()
        if version in (None, self._version) or time.monotonic() < self._look_at:
            return False
        try:
            self._check_access(spark)
        except PipelineError as error:
            if str(error) != self._unused:
                self._unused = str(error)
                text = "the Secret of %s has changed and is not used yet: %s"
                LOG.warning(text, user_of(self._spec), error)
            self._look_at = time.monotonic() + RETRY_S
            return False
        return True

    def _of_sink(self, failure: BaseException) -> PipelineError:
        """What went wrong while a batch was written."""
        if isinstance(failure, PipelineError):
            return failure
        if isinstance(failure, OSError):
            place = failure.filename or self._options.volume.output(self._spec)
            return PipelineError(f"cannot write to {place}: {failure.strerror}")
        return explain(str(failure), self._spec)

    def _end(self, query: StreamingQuery, sink: ParquetSink, *, again: bool) -> None:
        """Let the batch at work finish, then stop the query between two batches."""
        if not again:
            self._board.phase(Phase.STOPPING)
        if not sink.close(grace_s=STOP_GRACE_S):
            LOG.warning("the batch at work takes too long: it will be done again")
        while not session.stop_query(query):
            LOG.warning("the query does not stop: it waits for a broker that does not answer")
            if self._stopping.is_set():
                return  # No batch is written any more; it ends with the session.

    def _report(self, query: StreamingQuery) -> None:
        """Put what Spark reported since the last time into the status."""
        for progress in self._new_reports(query):
            self._board.show(after(self._board.status, progress))
            if progress["numInputRows"]:
                LOG.info(
                    "batch %d: %d rows, %.0f rows/s, lag %d",
                    self._board.status.last_batch_id,
                    progress["numInputRows"],
                    self._board.status.rows_per_second,
                    self._board.status.lag or 0,
                )

    def _new_reports(self, query: StreamingQuery) -> list[dict[str, Any]]:
        seen = self._board.status.updated
        last = query.lastProgress
        if last is None or last.timestamp == seen:
            return []
        reports = [json.loads(report.json) for report in query.recentProgress]
        return [report for report in reports if report["timestamp"] > seen]

    def _awaited(self, phase: Phase, check: Callable[[], None]) -> None:
        """Come back when the check passes, or when stopped; raises what it says at the end."""
        left_s = self._options.wait_s
        while not self._stopping.is_set():
            try:
                check()
            except NotReadyError as error:
                if left_s <= 0:
                    raise
                now = _phase_of(error, phase)
                begun = self._board.status.phase is not now
                self._board.phase(now, str(error))
                if begun:
                    LOG.info("waiting: %s", error)
                self._stopping.wait(min(RETRY_S, left_s))
                left_s -= RETRY_S
            else:
                return

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """SIGTERM and SIGINT end the pipeline between two batches."""

        def stop(number: int, frame: object) -> None:
            self._stopping.set()

        before = {kind: signal.signal(kind, stop) for kind in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for kind, handler in before.items():
                signal.signal(kind, handler)


def _phase_of(error: NotReadyError, phase: Phase) -> Phase:
    """What is waited for: what the check is about, or access to it."""
    if isinstance(error, AuthenticationError):
        return Phase.WAITING_FOR_AUTHENTICATION
    if isinstance(error, AuthorizationError):
        return Phase.WAITING_FOR_AUTHORIZATION
    return phase
