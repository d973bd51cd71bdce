"""The list of compiled modules is the one by which they are built and reported."""

import importlib
from pathlib import Path
from typing import Final

from barnabas_kafka import compiled

ROOT: Final = Path(__file__).resolve().parents[2]


def test_listed_modules_report_whether_they_are_compiled() -> None:
    """The report agrees with each module's own COMPILED."""
    own = {name: importlib.import_module(name).COMPILED for name in compiled.MODULES}
    assert compiled.interpreted() == tuple(name for name in own if not own[name])


def test_make_and_uv_rebuild_for_the_same_files() -> None:
    """make and uv each list the files whose change needs another compilation."""
    paths = [f"src/{name.replace('.', '/')}.py" for name in compiled.MODULES]
    member = (ROOT / "libs" / "kafka" / "pyproject.toml").read_text()
    makefile = (ROOT / "Makefile").read_text()
    for path in paths:
        assert f'{{ file = "{path}" }}' in member
        assert f"libs/kafka/{path}" in makefile
