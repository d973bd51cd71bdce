"""Bytes made by kafka-clients itself, kept beside the values they were made from.

The README says how they are made again; `load` reads them for the tests.
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
MESSAGE_VERSIONS = ("2.8.2", "3.9.1", "4.4.0")
RECORDS_VERSION = "3.9.1"


def load(name: str) -> Iterator[dict[str, Any]]:
    """Yield the vectors of one file, for example ``messages-3.9.1``."""
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
