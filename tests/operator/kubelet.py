"""What a kubelet does with a Secret that a pod mounts."""

from __future__ import annotations

import tempfile
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path


def mount(data: Mapping[str, str], directory: Path) -> None:
    """The data of a Secret as files: links through a directory that is exchanged at once."""
    fresh = Path(tempfile.mkdtemp(prefix="..", dir=directory))
    for name, text in data.items():
        (fresh / name).write_bytes(b64decode(text))
        link = directory / name
        if not link.is_symlink():
            link.symlink_to(Path("..data") / name)
    for link in directory.iterdir():
        if link.is_symlink() and not link.name.startswith("..") and link.name not in data:
            link.unlink()
    turned = directory / "..data_tmp"
    turned.symlink_to(fresh.name)
    turned.replace(directory / "..data")
