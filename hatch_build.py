"""Builds the compiled modules into the wheel `barnabas`; everything else is in pyproject.toml.

Modules and options are those of the member `barnabas-kafka`: its setup.py runs as a command of its
own. Where nothing can be compiled it builds nothing and succeeds, and the wheel is a pure one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NOT_SOURCES = shutil.ignore_patterns("build", "*.egg-info", "*.so", "__pycache__", ".*")


class CompiledModules(BuildHookInterface[Any]):
    """Adds what `setup.py build_ext` built, and the tag of the interpreter it was built for."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile a copy of the member, so that no other build's files get in, nor ours out."""
        if version == "editable":
            return
        # Removed when the build's process ends, interrupted or not.
        self.workspace = tempfile.TemporaryDirectory(prefix="barnabas-build-")
        member = Path(self.workspace.name, "member")
        output = Path(self.workspace.name, "output")
        shutil.copytree(Path(self.root, "libs", "kafka"), member, ignore=NOT_SOURCES)
        command = [sys.executable, "setup.py", "--quiet", "build_ext", "--build-lib", str(output)]
        command += ["--parallel", str(os.cpu_count() or 1)]
        # What a front end shows of its output: why nothing was compiled.
        subprocess.run(command, cwd=member, check=True, stdout=sys.stderr)
        modules = sorted(output.rglob("*.so"))
        if modules:
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            for module in modules:
                build_data["force_include"][str(module)] = str(module.relative_to(output))
