"""What a start of a broker loads: as listed, for every module is time and memory of every broker.

`python -m tests.broker.cli.test_modules_at_start` writes the list anew.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

LIST: Final = Path(__file__).with_name("modules_at_start.txt")
OURS: Final = "barnabas_"
DATACLASSES_MAX: Final = 190
"""Each takes a third to half of a millisecond of a start: its methods are compiled one by one."""

START: Final = """
    import dataclasses, json, os, sys

    made = 0
    process = dataclasses._process_class

    def counted(*given):
        global made
        made += 1
        return process(*given)

    dataclasses._process_class = counted
    before = set(sys.modules)

    def tell():
        loaded = {"modules": sorted(set(sys.modules) - before), "dataclasses": made}
        print(json.dumps(loaded), flush=True)
        os.kill(os.getpid(), 15)

    def notice(event, given):
        # The file that says that clients can connect.
        if event == "os.rename" and given[1] == sys.argv[-1]:
            tell()

    sys.addaudithook(notice)
    from barnabas_broker.cli.entry import main
    main()
"""


def loaded_at_start(directory: Path) -> dict[str, Any]:
    """The modules that `barnabas broker start` has loaded when clients can connect.

    `modules`: their names; `dataclasses`: how many of these were made.
    """
    settings = ["--set=listeners=PLAINTEXT://127.0.0.1:0", f"--set=log.dirs={directory / 'data'}"]
    ready = ["--ready-file", str(directory / "ready.json")]
    command = [sys.executable, "-c", textwrap.dedent(START), "broker", "start", *settings, *ready]
    reported = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    loaded: dict[str, Any] = json.loads(reported.splitlines()[-1])
    return loaded


def listed(modules: Iterable[str]) -> list[str]:
    """Each module of ours, and the packages of others, in order.

    The parts of others' packages, and private modules, differ from one Python to the next.
    """
    names = {name if name.startswith(OURS) else name.partition(".")[0] for name in modules}
    return sorted(name for name in names if not name.startswith("_"))


def test_a_start_loads_what_is_listed(tmp_path: Path) -> None:
    """A module at start is a decision: list it, or import it where it is first needed."""
    loaded = loaded_at_start(tmp_path)
    expected = set(LIST.read_text().split())
    found = set(listed(loaded["modules"]))
    assert not found - expected, "loaded at start, but not listed in modules_at_start.txt"
    gone = {name for name in expected - found if name.startswith(OURS)}
    assert not gone, "listed in modules_at_start.txt, but no longer loaded at start"
    assert loaded["dataclasses"] <= DATACLASSES_MAX


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as temporary:
        names = listed(loaded_at_start(Path(temporary))["modules"])
    LIST.write_text("\n".join(names) + "\n")
