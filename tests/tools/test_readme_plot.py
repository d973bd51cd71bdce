"""The README's plot shows the README's table."""

from __future__ import annotations

from xml.etree import ElementTree

from tools.readme_plot import BETTER, README, WIDTH, WORSE, drawn, figures

TABLE = """
| Case | Measure | Apache Kafka | Barnabas | Ratio |
|---|---|---|---|---|
| start | ms | 2,682 | 348 | 7.7 |
| read & copy | MB/s | 213 | 158 | **0.74** |

More.
"""


def test_rows_become_bars() -> None:
    """A win and a loss, each in its colour and with its ratio."""
    assert figures(TABLE) == [("start (ms)", 7.7), ("read & copy (MB/s)", 0.74)]
    root = ElementTree.fromstring(drawn(TABLE))
    bars = [each.attrib["fill"] for each in root if each.tag.endswith("rect")][1:]
    assert bars == [BETTER, WORSE]
    texts = [each.text for each in root if each.tag.endswith("text")]
    assert {"read & copy (MB/s)", "7.7x", "0.74x"} <= set(texts)


def test_every_bar_of_the_readme_fits() -> None:
    """A large ratio does not leave the picture."""
    root = ElementTree.fromstring(drawn(README.read_text(encoding="utf-8")))
    for bar in [each for each in root if each.tag.endswith("rect")][1:]:
        assert float(bar.attrib["x"]) > 0
        assert float(bar.attrib["x"]) + float(bar.attrib["width"]) < WIDTH - 40
