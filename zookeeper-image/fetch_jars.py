"""Brings the jars of a lock file into a directory, while the image is built."""

from __future__ import annotations

import sys
from pathlib import Path

from barnabas_pipelines import jars

if __name__ == "__main__":
    lock, directory = map(Path, sys.argv[1:])
    jars.fetch(directory, jars.parse(lock.read_text("utf-8")), source=jars.repository())
