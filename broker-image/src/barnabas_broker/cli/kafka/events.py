"""What the verifiable clients print: one event to a line, as JSON in the shape of Kafka's."""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def event(name: str, **facts: Any) -> None:
    """Print one event, at once: another program waits for it."""
    fields = {"timestamp": time.time_ns() // 1_000_000, "name": name, **facts}
    sys.stdout.write(json.dumps(fields, separators=(",", ":"), ensure_ascii=False) + "\n")
    sys.stdout.flush()
