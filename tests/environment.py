"""The environment of the tests: what a machine sets for its own programs does not reach them.

`conftest.py` calls `isolate` before anything else. What is left of the machine: its programs
(PATH), its caches (HOME), its proxies for addresses beyond this host, and the inputs of the run.
"""

from __future__ import annotations

import locale
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Final

INPUTS: Final = frozenset(
    {
        "BARNABAS_GOLDEN",
        "BARNABAS_MAVEN_REPOSITORY",
        "BARNABAS_REGISTRY",
        "BARNABAS_SPARK_JARS",
        "BROKER_UNDER_TEST",
        "KEEP",
        "KIND_NODE_IMAGE",
        "PYTHON",
        "PYTHONHOME",
        "SEED",
    }
)
"""What whoever starts the tests may say: kept, whatever `FOREIGN` says."""
FOREIGN: Final = (
    "BARNABAS_", "HADOOP_", "KAFKA_", "KUBERNETES_", "LC_", "PYSPARK_", "PYTHON", "SPARK_", "ZOO",
)  # fmt: skip
"""Prefixes of variables that brokers, clients, Spark, Java and Python would go by."""
FOREIGN_NAMES: Final = frozenset(
    {
        "CLASSPATH",
        "COLUMNS",
        "EXTRA_ARGS",
        "FORCE_COLOR",
        "JAVA_HOME",
        "JAVA_OPTS",
        "JAVA_TOOL_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "LANG",
        "LANGUAGE",
        "LINES",
        "LOG_DIR",
        "NO_COLOR",
        "WATCH_NAMESPACES",
        "XDG_STATE_HOME",
        "_JAVA_OPTIONS",
    }
)
LOCALE: Final = "C.UTF-8"
HERE: Final = "127.0.0.1,localhost"
UMASK: Final = 0o022
Handler = Callable[[int, FrameType | None], object] | signal.Handlers
SIGNALS: Final[Mapping[signal.Signals, Handler]] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGQUIT: signal.SIG_DFL,
}


def own(machine: Mapping[str, str]) -> dict[str, str]:
    """The environment of the tests on a machine with this one; a fixed point of itself."""
    kept = {
        name: value
        for name, value in machine.items()
        if name in INPUTS or not (name.startswith(FOREIGN) or name in FOREIGN_NAMES)
    }
    path, home = machine.get("PATH", ""), machine.get("JAVA_HOME")
    if home and shutil.which("java", path=path) is None:
        kept["PATH"] = f"{home}/bin{os.pathsep}{path}"
    for name in ("NO_PROXY", "no_proxy"):
        value = machine.get(name, "")
        kept[name] = value if HERE in value else ",".join(filter(None, (value, HERE)))
    return kept | {"LC_ALL": LOCALE, "TZ": "UTC"}


def isolate() -> None:
    """Give this process, and all that it starts, the environment of the tests."""
    wanted = own(os.environ)
    for name in os.environ.keys() - wanted.keys():
        del os.environ[name]
    os.environ.update(wanted)
    time.tzset()
    locale.setlocale(locale.LC_ALL, LOCALE)
    os.umask(UMASK)
    # A program that a shell starts in the background ignores these, and so do its children.
    for number, handler in SIGNALS.items():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
