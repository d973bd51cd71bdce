"""Producers and consumers: what they were told is what the cluster is held to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulator.world import World

TIMEOUT_MS = 1_500


class Producer:
    """An idempotent producer with acks=all that sends each record until it is acknowledged."""

    def __init__(self, world: World, number: int) -> None:
        self._world = world
        self.number = number
        self._sequence = 0
        self._attempt = 0
        self.acknowledged = 0
        self.refused = 0
        self.resting = False
        world.events.after(200 + 50 * number, "produce", self._send)

    @property
    def _value(self) -> str:
        return f"{self.number}.{self._sequence}"

    def _send(self) -> None:
        if self.resting:
            return
        world = self._world
        self._attempt += 1
        leader = world.guess_leader()
        broker, attempt = world.brokers[leader], self._attempt

        def reply(error: str, offset: int) -> None:
            world.network.send(leader, -self.number, "ack", self._on_answer, attempt, error, offset)

        world.network.send(-self.number, leader, "produce", broker.on_produce, self._value, reply)
        world.events.after(TIMEOUT_MS, "produce-timeout", self._on_answer, attempt, "TIMEOUT", -1)

    def _on_answer(self, attempt: int, error: str, offset: int) -> None:
        if attempt != self._attempt:
            return
        self._attempt += 1
        if error:
            self.refused += 1
            self._world.events.after(100, "produce-again", self._send)
            return
        self.acknowledged += 1
        self._sequence += 1
        pause = self._world.events.chance.choice((1, 20, 150, 400))
        self._world.events.after(pause, "produce-next", self._send)

    def rest(self) -> None:
        """Send nothing more once the present record is acknowledged."""
        self.resting = True


class Consumer:
    """A consumer that reads from the beginning on, and follows the leader."""

    def __init__(self, world: World, number: int) -> None:
        self._world = world
        self.number = number
        self.position = 0
        self._epoch = -1
        world.events.after(500, "consume", self._poll)

    def _poll(self) -> None:
        world = self._world
        world.events.after(250, "consume", self._poll)
        leader = world.guess_leader()
        broker = world.brokers[leader]
        position = self.position

        def reply(values: list[str] | None, epoch: int) -> None:
            if values is not None:
                world.network.send(
                    leader, -self.number, "records", self._got, position, values, epoch
                )

        world.network.send(
            -self.number, leader, "consume", broker.on_consume, position, self._epoch, reply
        )

    def _got(self, position: int, values: list[str], epoch: int) -> None:
        if position != self.position or epoch < self._epoch:
            return
        for value in values:
            self._world.checker.was_read(self.position, value)
            self.position += 1
        self._epoch = epoch
