"""What is on a disk after a stop: page cache and device, replayed effect by effect.

``Machine.apply`` takes the effects that :class:`~tests.broker.log.disk.Disk` noted; ``image`` says
what would be found if everything ended now. A killed process leaves the page cache, all of it. A
power cut leaves what was synced, to the byte, and of the rest what the kernel happened to write
back: :class:`Loss` names the cases, each of them measured on ext4 and XFS.

A name is durable when its directory was synced after it was made, changed or removed. Journals
usually do better: they keep changes of names in order, and a sync of any file takes all earlier
ones along. Both are modelled, the second with every prefix of the changes no sync took along.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path


class Loss(Enum):
    """What a stop leaves of bytes that were written and not synced."""

    KILL = "the process dies: the page cache survives"
    NOTHING_BACK = "power fails: a file has what was synced, 0 bytes if it never was"
    ZEROS = "power fails: sizes survive, unsynced bytes are zeros"
    HALF = "power fails: the first half of the unsynced bytes is there"
    HOLE = "power fails: the first half of the unsynced bytes is zeros, the second is there"


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing done to a disk; ``node`` numbers a file or directory, whatever its name is.

    Kinds: file, directory (a new node); link, rename, unlink (``name`` in directory ``node``);
    write, truncate, sync.
    """

    kind: str
    node: int
    name: str = ""
    child: int = -1
    #: for a rename, the directory and the name it was
    source: tuple[int, str] = (-1, "")
    #: where a write begins, or the size after a truncation
    position: int = 0
    data: bytes = b""


Names = dict[int, dict[str, int]]
Tree = dict[str, "bytes | Tree"]

_NAMESPACE = ("link", "rename", "unlink")


@dataclass(eq=False, slots=True)
class _Content:
    cached: bytearray = field(default_factory=bytearray)
    synced: bytes = b""


class Machine:
    """Page cache and device of one machine; node 0 is the root directory."""

    def __init__(self) -> None:
        self._contents: dict[int, _Content] = {}
        #: names as the running system sees them
        self._cached: Names = {}
        #: names whose directories were synced
        self._synced: Names = {}
        #: names as an ordered journal has them, and the changes it has not written
        self._journaled: Names = {}
        self._pending: list[Effect] = []

    def apply(self, effect: Effect) -> None:
        """Take note of one effect."""
        if effect.kind == "directory":
            for names in (self._cached, self._synced, self._journaled):
                names[effect.node] = {}
        elif effect.kind == "file":
            self._contents[effect.node] = _Content()
        elif effect.kind in _NAMESPACE:
            _change(self._cached, effect)
            self._pending.append(effect)
        elif effect.kind == "sync":
            self._sync(effect.node)
        else:
            _write(self._contents[effect.node].cached, effect)

    def _sync(self, node: int) -> None:
        for change in self._pending:
            _change(self._journaled, change)
        self._pending.clear()
        if node in self._cached:
            self._synced[node] = dict(self._cached[node])
        else:
            content = self._contents[node]
            content.synced = bytes(content.cached)

    @property
    def pending_names(self) -> int:
        """How many changes of names no sync has taken along."""
        return len(self._pending)

    def image(self, loss: Loss | Callable[[int], Loss], names: int | None = None) -> Tree:
        """The tree after a stop; ``loss`` may differ by node.

        ``names`` is for power cuts: None keeps the names whose directories were synced and no
        others; a number keeps all that a sync took along, and as many changes after those.
        """
        if loss is Loss.KILL:
            return self._tree(0, self._cached, loss)
        if names is None:
            return self._tree(0, self._synced, loss)
        kept = {node: dict(entries) for node, entries in self._journaled.items()}
        for change in self._pending[:names]:
            _change(kept, change)
        return self._tree(0, kept, loss)

    def _tree(self, node: int, names: Names, loss: Loss | Callable[[int], Loss]) -> Tree:
        return {
            name: self._tree(child, names, loss)
            if child in names
            else _survived(self._contents[child], loss if isinstance(loss, Loss) else loss(child))
            for name, child in names[node].items()
        }


def _change(names: Names, effect: Effect) -> None:
    if effect.kind == "unlink":
        names[effect.node].pop(effect.name, None)
        return
    if effect.kind == "rename":
        directory, name = effect.source
        names[directory].pop(name, None)
    names[effect.node][effect.name] = effect.child


def _write(cached: bytearray, effect: Effect) -> None:
    if effect.kind == "truncate":
        del cached[effect.position :]
        cached.extend(bytes(effect.position - len(cached)))
        return
    cached.extend(bytes(max(effect.position - len(cached), 0)))
    cached[effect.position : effect.position + len(effect.data)] = effect.data


def _survived(content: _Content, loss: Loss) -> bytes:
    cached, synced = bytes(content.cached), content.synced
    if loss is Loss.KILL or cached == synced:
        return cached
    if loss is Loss.NOTHING_BACK:
        return synced
    same = _common_prefix(cached, synced)
    middle = same + (len(cached) - same + 1) // 2
    if loss is Loss.HALF:
        return cached[:middle]
    old = synced[same : len(cached)]
    if loss is Loss.ZEROS:
        return cached[:same] + old.ljust(len(cached) - same, b"\0")
    return cached[:same] + old[: middle - same].ljust(middle - same, b"\0") + cached[middle:]


def _common_prefix(one: bytes, other: bytes) -> int:
    """How many bytes at the beginning are equal."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def write_tree(tree: Tree, directory: Path) -> None:
    """Put an image into a new directory."""
    directory.mkdir()
    for name, content in tree.items():
        if isinstance(content, bytes):
            (directory / name).write_bytes(content)
        else:
            write_tree(content, directory / name)
