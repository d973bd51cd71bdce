"""The plot of the README: its table of figures as bars, losses in another colour.

Right of the line Barnabas is faster or smaller. The scale is logarithmic.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

README: Final = Path(__file__).resolve().parent.parent / "README.md"
HEADING: Final = "| Case | Measure |"

WIDTH: Final = 860
ROW: Final = 24
TOP: Final = 34
LABELS: Final = 440
SCALE: Final = 70.0
"""Pixels for each doubling."""
ZERO: Final = LABELS + 60
BETTER, WORSE = "#15803d", "#b91c1c"


def figures(readme: str) -> list[tuple[str, float]]:
    """Case with its measure, and ratio, of each row of the README's table."""
    found = []
    lines = iter(readme.splitlines())
    for line in lines:
        if line.startswith(HEADING):
            break
    next(lines)
    for line in lines:
        if not line.startswith("|"):
            break
        case, measure, *_, ratio = (cell.strip() for cell in line.strip("|").split("|"))
        found.append((f"{case} ({measure})", float(ratio.strip("*"))))
    return found


def drawn(readme: str) -> str:
    """The SVG document."""
    rows = figures(readme)
    height = TOP + ROW * len(rows) + 12
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" aria-labelledby="title">\n'
        '  <title id="title">Barnabas compared with Apache Kafka: the ratios of the table</title>\n'
        '  <style>text { font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif; '
        "font-size: 12px; fill: #0f172a }</style>\n"
        f'  <rect width="{WIDTH}" height="{height}" rx="12" fill="#ffffff"/>\n'
        f'  <text x="{ZERO - 8}" y="20" text-anchor="end">Apache Kafka better</text>\n'
        f'  <text x="{ZERO + 8}" y="20">Barnabas better</text>\n'
    )
    parts = [head]
    parts += [_bar(label, ratio, TOP + ROW * place) for place, (label, ratio) in enumerate(rows)]
    parts.append(f'  <path d="M{ZERO} 8 L{ZERO} {height - 8}" stroke="#0f172a"/>\n</svg>\n')
    return "".join(parts)


def _bar(label: str, ratio: float, y: int) -> str:
    length = max(2, round(abs(math.log2(ratio)) * SCALE))
    start = ZERO if ratio >= 1 else ZERO - length
    end = ZERO + length if ratio >= 1 else ZERO
    colour = BETTER if ratio >= 1 else WORSE
    return (
        f'  <text x="{LABELS - 12}" y="{y + 15}" text-anchor="end">{escape(label)}</text>\n'
        f'  <rect x="{start}" y="{y + 3}" width="{length}" height="{ROW - 8}" fill="{colour}"/>\n'
        f'  <text x="{end + 6}" y="{y + 15}">{ratio:g}x</text>\n'
    )
