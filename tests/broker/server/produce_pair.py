"""Two brokers that are told the same Produce requests, one of which knows the general way only."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from hypothesis import strategies as st

from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.requests.dispatch import Dispatcher
from barnabas_kafka.protocol.messages.produce import ProduceRequest
from barnabas_kafka.protocol.plain_produce import PlainAnswer
from barnabas_kafka.records.batch import ATTRIBUTES_POSITION, CRC_POSITION
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from barnabas_kafka.records.crc import crc32c
from tests.broker.server.running import Wire, port_of, running_node, told_of_dispatchers

NOW: Final = 1_700_000_000_000


class Pair:
    """Two brokers that are told the same, one of which knows the general way only."""

    def __init__(
        self, directory: Path, nodes: tuple[BrokerServer, BrokerServer], wires: tuple[Wire, Wire]
    ) -> None:
        self.directory = directory
        self.nodes = nodes
        self.wires = wires
        for wire in wires:
            wire.create_topic("plain", partitions=3)
            wire.create_topic("compact", cleanup_policy="compact")
            wire.create_topic("stamped", message_timestamp_type="LogAppendTime")
            wire.create_topic("unpacked", compression_type="uncompressed")
            wire.create_topic("small", max_message_bytes="150", segment_bytes="1000")

    def ask(self, request: ProduceRequest, version: int) -> bytes:
        """Send both the same bytes; their answer, which is the same."""
        answers = []
        for wire in self.wires:
            wire.send(request, version)
            answers.append(wire.receive_frame() if request.acks else b"")
        assert answers[0] == answers[1]
        return answers[0]

    def ask_together(self, requests: Sequence[tuple[ProduceRequest, int]]) -> list[bytes]:
        """Send both the same requests, each with its version, in one piece; their answers."""
        answers = []
        for wire in self.wires:
            wire.socket.sendall(b"".join(wire.frame(*request) for request in requests))
            answers.append([wire.receive_frame() for request, _ in requests if request.acks])
        assert answers[0] == answers[1]
        return answers[0]

    def compare_logs(self) -> None:
        """What both keep is the same, but where a topic has the broker's time.

        Segments, file by file, and producers in the order in which they wrote: the next snapshot
        has them so.
        """
        trees = [
            {
                path.relative_to(root): path.read_bytes()
                for path in sorted(root.glob("*/*.log"))
                if not path.parent.name.startswith("stamped")
            }
            for root in (self.directory / "short", self.directory / "general")
        ]
        assert trees[0] == trees[1]
        short, general = (
            {
                partition.tp: list(partition.log.producers.producers.items())
                for partition in node.broker.replicas
            }
            for node in self.nodes
        )
        assert short == general


@contextmanager
def running_pair(directory: Path) -> Iterator[Pair]:
    """A pair whose data lie in `directory`; what one test leaves in the logs is in both."""
    with ExitStack() as stack:
        short = stack.enter_context(running_node(directory / "short"))
        with told_of_dispatchers(general_only):
            general = stack.enter_context(running_node(directory / "general"))
        wires = (
            stack.enter_context(Wire(port_of(short))),
            stack.enter_context(Wire(port_of(general))),
        )
        yield Pair(directory, (short, general), wires)


def general_only(dispatcher: Dispatcher) -> None:
    """Close the short ways of a broker."""
    dispatcher._plain_produce = step_aside  # type: ignore[assignment]
    dispatcher._produce_runs = serve_none  # type: ignore[assignment]


def step_aside(*asked: object) -> list[PlainAnswer]:
    """The short way of somebody to whom nothing is ordinary."""
    return []


def serve_none(*asked: object) -> None:
    """Nothing is served together."""


@st.composite
def sampled_batches(draw: st.DrawFn) -> bytes:
    """Batches of all kinds: most are sound and plain, some are one or neither."""
    content = [
        (NOW + draw(st.integers(0, 50)), draw(st.none() | st.just(b"key")), b"v" * length, ())
        for length in draw(st.lists(st.integers(0, 60), min_size=1, max_size=3))
    ]
    kind = draw(
        st.sampled_from(
            ("plain",) * 6 + ("sequenced",) * 3 + ("packed", "packed and sequenced")
            + ("transactional", "damaged", "old")
        )
    )  # fmt: skip
    codec = draw(st.sampled_from(tuple(Codec))) if kind.startswith("packed") else Codec.NONE
    if kind.endswith("sequenced") or kind == "transactional":
        return build_batch(
            content,
            codec=codec,
            producer_id=draw(st.integers(1, 2)),
            producer_epoch=draw(st.integers(0, 1)),
            base_sequence=draw(st.integers(0, 3)),
            transactional=kind == "transactional",
        )
    # A latest timestamp that is not true is mended where a batch is looked at closely.
    latest = NOW + 60 if codec and draw(st.booleans()) else None
    batch = bytearray(build_batch(content, codec=codec, max_timestamp=latest))
    if kind == "damaged" or (kind == "packed" and draw(st.booleans())):
        batch[draw(st.integers(0, len(batch) - 1))] ^= 0x55
        if draw(st.booleans()):  # What a client made is wrong, not what the network brought.
            batch[CRC_POSITION : CRC_POSITION + 4] = crc32c(batch[ATTRIBUTES_POSITION:]).to_bytes(
                4, "big"
            )
    if kind == "old":
        batch[16] = 1
    return bytes(batch)
