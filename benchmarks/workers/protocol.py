"""What a worker process and the harness say to each other: a specification, ready, go, a report."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

Spec = dict[str, Any]
Report = dict[str, Any]


def serve(prepare: Callable[[Spec], Callable[[], Report]]) -> None:
    """Prepare by the specification in the first argument, wait for the word, work, report.

    `prepare` connects and builds everything; the callable it returns does only the measured work.
    """
    work = prepare(json.loads(sys.argv[1]))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    if sys.stdin.readline().strip() != "go":
        return
    before = time.process_time()
    report = work()
    report["client_cpu_seconds"] = time.process_time() - before
    sys.stdout.write(json.dumps(report) + "\n")
    sys.stdout.flush()
