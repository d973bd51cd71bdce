"""Looks for secrets where they must not be: in what was printed, in files, in processes."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote

PROC: Final = Path("/proc")
_GROUP: Final = 3


@dataclass
class Leaks:
    """Known secrets by what they are, and where one of them was found."""

    secrets: dict[str, str] = field(default_factory=dict)
    found: list[str] = field(default_factory=list)
    searched: dict[str, int] = field(default_factory=dict)
    """How many bytes were looked through of what, so that a search of nothing is noticed."""

    def look(self, where: str, text: str | bytes) -> None:
        """Search a text for each secret, in the forms it may have there."""
        content = text.encode() if isinstance(text, str) else text
        self.searched[where] = self.searched.get(where, 0) + len(content)
        for what, secret in self.secrets.items():
            if any(form in content for form in forms(secret)):
                self.found.append(f"{what} in {where}")

    def look_at_files(self, directory: Path) -> None:
        """Search each file below, by its name."""
        for file in sorted(directory.rglob("*")):
            if file.is_file():
                self.look(f"{directory.name}/{file.relative_to(directory)}", file.read_bytes())

    def look_at_processes(self, root: int) -> int:
        """Search arguments and environments of a process and its descendants; returns how many."""
        tree = {root, *descendants(root)}
        for pid in tree:
            for name in ("cmdline", "environ"):
                self.look(name, (PROC / str(pid) / name).read_bytes())
        return len(tree)


def forms(secret: str) -> Iterator[bytes]:
    """As it is, in hexadecimal digits, as part of a URL, and as a part of something in base64."""
    plain = secret.encode()
    yield plain
    yield plain.hex().encode()
    yield plain.hex().upper().encode()
    yield quote(secret, safe="").encode()
    for before in range(_GROUP):
        # Of the characters at either end some bits belong to neighbours.
        encoded = base64.b64encode(b"\0" * before + plain)
        inner = encoded[-(-before * 8 // 6) :].rstrip(b"=")[:-1]
        yield inner
        yield inner.translate(bytes.maketrans(b"+/", b"-_"))


def descendants(root: int) -> Iterable[int]:
    """The processes below one."""
    parents: Mapping[int, int] = dict(_parents())
    for pid in parents:
        above = pid
        while (above := parents.get(above, 0)) > 1:
            if above == root:
                yield pid
                break


def _parents() -> Iterator[tuple[int, int]]:
    for directory in PROC.glob("[0-9]*"):
        try:
            stat = (directory / "stat").read_text()
        except OSError:
            continue  # It has ended.
        yield int(directory.name), int(stat.rpartition(")")[2].split()[1])
