"""How a broker follows a leader: what it asks, and what it makes of the answers, in virtual time.

Every decision is the product's own (`replica.follower`); what is done here is to send requests,
to wait for their answers, and to append, truncate and start again as decided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from barnabas_broker.replica import follower
from barnabas_broker.replica.follower import (
    Append,
    AskEpochEnd,
    AskLogEnds,
    AskRecords,
    EpochEnd,
    Fetched,
    Following,
    LogEnds,
    Phase,
    Question,
    StartAt,
    Step,
    Truncate,
    Wait,
)
from simulator.network import Reply

if TYPE_CHECKING:
    from simulator.broker import Broker

REQUEST_TIMEOUT_MS = 1_200
BACKOFF_MS = 100


class ReplicaFetcher:
    """One request to the leader at a time."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._world = broker.world
        self._log = broker.log
        self.reset()

    def reset(self) -> None:
        """A new process follows no leader yet."""
        self._leader = -1
        self._state: Following | None = None
        self._asked = 0
        self._outstanding = 0

    def follow(self, leader: int, leader_epoch: int) -> None:
        """Fetch from this leader from now on."""
        self._leader = leader
        self._outstanding = 0
        self._state = follower.follow(
            self._log,
            leader_epoch=leader_epoch,
            truncates_on_fetch=self._world.truncates_on_fetch,
            before=self._state,
        )
        self.replicate()

    def stop(self) -> None:
        """Fetch no more: there is no leader, or this broker is it."""
        self._outstanding = 0
        self._state = None

    def replicate(self) -> None:
        """Ask the leader the next question, if none is under way."""
        state, log = self._state, self._log
        if state is None or self._outstanding or not self._broker.up:
            return
        asked = follower.question(state, log)
        if asked is None:
            return
        if isinstance(asked, Truncate):
            self._truncate(asked)
            self.replicate()
            return
        if self._world.options.profile.fsync and log.durable_offset < log.log_end_offset:
            self._broker.flush_soon()
            return
        self._asked += 1
        self._outstanding = self._asked
        self._broker.later(REQUEST_TIMEOUT_MS, "timeout", self._timed_out, self._asked)
        self._send(asked, self._asked)

    def _send(self, asked: Question, number: int) -> None:
        broker, leader = self._broker, self._world.brokers[self._leader]

        def reply_to(act: Callable[..., None]) -> Reply:
            return broker.replier(broker.number, act, number)

        match asked:
            case AskRecords():
                reply = reply_to(self._on_fetched)
                epoch = broker.broker_epoch
                broker.send(
                    leader.number, "fetch", leader.on_fetch, broker.number, epoch, asked, reply
                )
            case AskEpochEnd():
                reply = reply_to(self._on_epoch_end)
                broker.send(leader.number, "epoch-end", leader.on_epoch_end, asked, reply)
            case AskLogEnds():
                reply = reply_to(self._on_log_ends)
                broker.send(leader.number, "log-ends", leader.on_log_ends, asked, reply)

    def _timed_out(self, number: int) -> None:
        if self._outstanding == number:
            self._outstanding = 0
            self.replicate()

    def _on_fetched(self, number: int, asked: AskRecords, answer: Fetched, records: Any) -> None:
        state, log = self._answered(number), self._log
        if state is None:
            return
        if self._world.options.bugs.ignore_fetch_epoch:
            asked = replace(asked, leader_epoch=state.leader_epoch)
        step = follower.on_fetch(state, log, asked, answer)
        if not isinstance(step.effect, Append):
            self._take(step)
            return
        old = log.high_watermark
        if records:
            log.append_fetched(records, max_epoch=step.effect.max_epoch)
        self._state = follower.appended(step.state, log)
        log.take_marks(step.effect.high_watermark)
        if log.high_watermark != old:
            self._world.checker.follower_moves(self._broker.number, old, log.high_watermark)
        if not records and log.log_end_offset >= step.effect.high_watermark:
            self._broker.tail_known = True
        self.replicate()

    def _on_epoch_end(self, number: int, asked: AskEpochEnd, answer: EpochEnd) -> None:
        state = self._answered(number)
        if state is not None:
            self._take(follower.on_epoch_end(state, self._log, asked, answer))

    def _on_log_ends(self, number: int, asked: AskLogEnds, answer: LogEnds) -> None:
        state = self._answered(number)
        if state is not None:
            self._take(follower.on_log_ends(state, self._log, asked, answer))

    def _answered(self, number: int) -> Following | None:
        if self._outstanding != number:
            return None
        self._outstanding = 0
        return self._state

    def _take(self, step: Step) -> None:
        self._state = step.state
        match step.effect:
            case Truncate() | StartAt():
                self._truncate(step.effect)
            case Wait():
                self._broker.later(BACKOFF_MS, "backoff", self.replicate)
                return
        if step.state.phase is not Phase.STOPPED:
            self.replicate()

    def _truncate(self, cut: Truncate | StartAt) -> None:
        log = self._log
        if cut.offset < log.log_end_offset:
            self._world.events.note(
                f"{self._broker} truncates {log.log_end_offset} to {cut.offset}"
            )
        log.truncate_to(cut.offset)
        assert self._state is not None
        self._state = follower.truncated(self._state, log, cut)
