"""Hooks of the documentation site: pages from outside docs/, and links that leave it.

Links in the repository are relative, so that they work in a checkout. The site has another root:
a link to a published file is rewritten to its page, and a link to a file of the sources, which the
site does not have, becomes its text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
PAGES: Final = "docs/"
PUBLISHED: Final = {
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
    "benchmarks/footprint.md": "benchmarks/footprint.md",
    "benchmarks/results/2026-11-23-engine/README.md": "benchmarks/README.md",
    "benchmarks/results/2026-11-23-engine/ratios.svg": "benchmarks/ratios.svg",
}
"""Files outside docs/ by their path in the repository, and their path on the site."""

_LINK: Final = re.compile(
    r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s#]+)(?P<anchor>#[^)]*)?\)"
)
_FENCE: Final = re.compile(r"^ *```")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages from outside docs/."""
    from mkdocs.structure.files import File  # Only the environment of the site has it.

    for path, place in PUBLISHED.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Rewrite the links of one page."""
    return rewritten(markdown, page.file.src_uri)


def rewritten(markdown: str, place: str) -> str:
    """The text of the page at that place of the site, with links that are right there."""
    outside = {site: path for path, site in PUBLISHED.items()}
    path = outside.get(place, PAGES + place)
    lines = []
    fenced = False
    for line in markdown.splitlines():
        fenced ^= _FENCE.match(line) is not None
        lines.append(line if fenced else _LINK.sub(lambda link: _relinked(link, path, place), line))
    return "\n".join(lines) + "\n"


def _relinked(link: re.Match[str], path: str, place: str) -> str:
    target = link["target"]
    if ":" in target:
        return link[0]
    file = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    there = site_path(file)
    if there is None:
        return link["text"]
    relative = posixpath.relpath(there, posixpath.dirname(place) or ".")
    return f"{link['image']}[{link['text']}]({relative}{link['anchor'] or ''})"


def site_path(file: str) -> str | None:
    """Where the site has a file of the repository, if it does."""
    if file in PUBLISHED:
        return PUBLISHED[file]
    if file.startswith(PAGES) and not file.endswith(".py"):
        return file.removeprefix(PAGES)
    return None
