"""Follows the quickstarts with a broker in a terminal of its own, as their first page says.

`python3 -m e2e.newcomer.quickstarts python.md kcat.md` does so as the user who calls it, one page
after the other on the same data directory; `barnabas` is where `make install` put it. Standard
library only, as this also runs where nothing else is installed.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from e2e.newcomer.play import PATH, environment
from tests.quickstarts import pages
from tests.waiting import START, seconds, wait_for

ADDRESS: Final = ("localhost", 9092)
# Where the documents have one put commands: `make install`, and Go's own guide.
COMMANDS: Final = ("{home}/.local/bin", "/usr/local/go/bin")


def login(home: Path) -> dict[str, str]:
    """The variables of a login of one who has installed what the page asks for."""
    commands = ":".join(COMMANDS).format(home=home)
    return environment(home, os.environ) | {"PATH": f"{commands}:{PATH}"}


def _answers() -> bool:
    try:
        socket.create_connection(ADDRESS, timeout=1).close()
    except OSError:
        return False
    return True


@contextmanager
def broker(variables: Mapping[str, str]) -> Iterator[None]:
    """`barnabas broker start` until Ctrl-C; raises RuntimeError where it does not end well."""
    with tempfile.TemporaryFile() as output:
        command = ("barnabas", "broker", "start")
        process = subprocess.Popen(
            ["/usr/bin/env", *command], env=variables, stdout=output, stderr=output
        )
        try:
            wait_for(f"{ADDRESS} to answer", _answers, until=bool, within=START)
            yield
        finally:
            process.send_signal(signal.SIGINT)
            status = process.wait(seconds(START))
        if status != 0:
            output.seek(0)
            said = output.read().decode(errors="replace")
            raise RuntimeError(f"{' '.join(command)} ended with {status}:\n{said}")


def main(arguments: Sequence[str]) -> int:
    """Follow the pages; the exit status says whether all did what they show."""
    home = Path.home()
    variables = login(home)
    for page in arguments:
        began = time.monotonic()
        directory = Path(tempfile.mkdtemp(prefix=f"{page}-", dir=home))
        with broker(variables):
            pages.follow(page, directory, bootstrap=pages.PRINTED, variables=variables)
        sys.stdout.write(f"{page}: as printed, in {time.monotonic() - began:.0f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
