"""Golden manifests: what builders make, written down; `BARNABAS_GOLDEN=write` renews them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

GOLDEN = Path(__file__).parent.parent / "golden"


def compare(name: str, objects: Sequence[Any]) -> None:
    """Compare objects with the golden file of this name."""
    text = yaml.safe_dump_all(objects, sort_keys=False, width=100)
    path = GOLDEN / f"{name}.yaml"
    if os.environ.get("BARNABAS_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    wanted = path.read_text(encoding="utf-8")
    assert text == wanted, f"{path.name} is different; BARNABAS_GOLDEN=write shows how in git diff"
