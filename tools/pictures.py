"""The sequence diagrams of the documentation, as SVG made from a list of messages.

`tools.gen_docs` writes them to docs/pictures and finds those that are behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

COLUMN: Final = 270
ROW: Final = 44
TOP: Final = 64
MARGIN: Final = 110

_HEAD: Final = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" \
width="{width}" height="{height}" role="img" aria-labelledby="title">
  <title id="title">{title}</title>
  <defs><marker id="e" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" \
orient="auto"><path d="M0 0 L8 4 L0 8 Z" fill="#475569"/></marker></defs>
  <style>
    text {{ font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif; text-anchor: middle; \
fill: #0f172a }}
    .t {{ font-size: 14px; font-weight: 600 }}
    .a {{ font-size: 12px; fill: #334155 }}
  </style>
  <rect width="{width}" height="{height}" rx="12" fill="#ffffff"/>
"""


@dataclass(frozen=True, slots=True)
class Message:
    """An arrow between two participants, or a note at one (`source` and `target` are the same)."""

    source: int
    target: int
    text: str


@dataclass(frozen=True, slots=True)
class Diagram:
    """A diagram: participants from left to right, messages from top to bottom."""

    title: str
    participants: Sequence[str]
    messages: Sequence[Message]


PRODUCE: Final = Diagram(
    "A produce request with acks=all",
    ("Producer", "Leader", "Follower"),
    (
        Message(0, 1, "Produce: a batch of records"),
        Message(1, 1, "check CRC, epoch, sequence; append"),
        Message(2, 1, "Fetch from offset n"),
        Message(1, 2, "the batch"),
        Message(2, 2, "append"),
        Message(2, 1, "Fetch from offset n+1"),
        Message(1, 1, "advance the high watermark"),
        Message(1, 0, "base offset, no error"),
    ),
)
REBALANCE: Final = Diagram(
    "A rebalance of a classic consumer group with the cooperative assignor",
    ("Consumer A", "Coordinator", "Consumer B"),
    (
        Message(2, 1, "JoinGroup"),
        Message(1, 0, "Heartbeat: REBALANCE_IN_PROGRESS"),
        Message(0, 1, "JoinGroup, with owned partitions"),
        Message(1, 0, "members and subscriptions (A leads)"),
        Message(1, 2, "generation n"),
        Message(0, 1, "SyncGroup: the assignment"),
        Message(1, 1, "append to __consumer_offsets"),
        Message(1, 0, "partitions to keep"),
        Message(1, 2, "partitions that are free"),
        Message(0, 1, "JoinGroup: partitions revoked"),
        Message(1, 2, "after a second round: the rest"),
    ),
)
ROLL: Final = Diagram(
    "The operator replaces one broker of a cluster",
    ("Operator", "Broker 2", "Other brokers"),
    (
        Message(0, 2, "is every partition safe without broker 2?"),
        Message(2, 0, "yes (else wait, and report the blockers)"),
        Message(0, 1, "delete the pod: SIGTERM"),
        Message(1, 2, "controlled shutdown: move leaderships"),
        Message(1, 1, "flush, close logs, stop"),
        Message(0, 1, "new pod, same volume"),
        Message(1, 2, "register; fetch what it missed"),
        Message(2, 2, "expand the ISR"),
        Message(0, 1, "ready and in sync?"),
        Message(1, 0, "yes: next broker"),
    ),
)
PICTURES: Final = {"produce.svg": PRODUCE, "rebalance.svg": REBALANCE, "roll.svg": ROLL}


def drawn(diagram: Diagram) -> str:
    """The diagram as an SVG document."""
    width = 2 * MARGIN + COLUMN * (len(diagram.participants) - 1)
    height = TOP + ROW * (len(diagram.messages) + 1)
    parts = [_HEAD.format(width=width, height=height, title=escape(diagram.title))]
    for number, name in enumerate(diagram.participants):
        x = _x(number)
        parts.append(
            f'  <path d="M{x} 44 L{x} {height - 16}" stroke="#94a3b8" stroke-dasharray="4 4"/>\n'
            f'  <rect x="{x - 75}" y="14" width="150" height="32" rx="8" fill="#dcfce7" '
            f'stroke="#15803d" stroke-width="1.5"/>\n'
            f'  <text x="{x}" y="35" class="t">{escape(name)}</text>\n'
        )
    for number, message in enumerate(diagram.messages):
        parts.append(_arrow(message, TOP + ROW * (number + 1) - 10))
    return "".join([*parts, "</svg>\n"])


def _x(participant: int) -> int:
    return MARGIN + COLUMN * participant


def _arrow(message: Message, y: int) -> str:
    source, target = _x(message.source), _x(message.target)
    text = escape(message.text)
    if source == target:
        return (
            f'  <rect x="{source - 105}" y="{y - 24}" width="210" height="26" rx="6" '
            f'fill="#f1f5f9" stroke="#64748b"/>\n'
            f'  <text x="{source}" y="{y - 7}" class="a">{text}</text>\n'
        )
    gap = 4 if target > source else -4
    return (
        f'  <path d="M{source} {y} L{target - gap} {y}" stroke="#475569" stroke-width="1.5" '
        f'fill="none" marker-end="url(#e)"/>\n'
        f'  <text x="{(source + target) // 2}" y="{y - 6}" class="a">{text}</text>\n'
    )
