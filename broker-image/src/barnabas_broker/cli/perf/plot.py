"""Latencies as a picture, by matplotlib: a histogram and the curve of percentiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from barnabas_broker.cli.errors import InputError

KINDS = (".png", ".svg", ".pdf")


def check(path: Path) -> None:
    """InputError where no picture could be written there, before anything is measured."""
    if path.suffix not in KINDS:
        raise InputError(f"--plot {path}: the name ends in one of {', '.join(KINDS)}")
    if not path.absolute().parent.is_dir():
        raise InputError(f"--plot {path}: there is no directory {path.absolute().parent}")
    try:
        import matplotlib  # noqa: F401 - whether it is there
    except ModuleNotFoundError:
        text = "--plot needs matplotlib: pip install matplotlib"
        raise InputError(text) from None


def write(path: Path, title: str, series: Mapping[str, Sequence[float]]) -> None:
    """Write sorted samples in milliseconds, by name, to `path`."""
    import matplotlib as mpl

    mpl.use("Agg")  # before pyplot: there may be no display
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
    for name, ordered in series.items():
        low, high = max(ordered[0], 0.001), max(ordered[-1], 0.002)
        edges = [low * (high / low) ** (index / 60) for index in range(61)]
        left.hist(ordered, bins=edges, alpha=0.6, label=name)
        count = len(ordered)
        # Nines of percentiles on a logarithmic scale: 1 / (1 - fraction).
        picks = sorted({min(int(count * (1 - 10 ** (-n / 20))), count - 1) for n in range(101)})
        right.plot([count / (count - pick) for pick in picks], [ordered[p] for p in picks],
                   label=name)  # fmt: skip
    left.set(xscale="log", xlabel="latency, ms", ylabel="records")
    right.set(xscale="log", yscale="log", xlabel="percentile", ylabel="latency, ms")
    right.set_xticks([2, 10, 100, 1000, 10000], ["50", "90", "99", "99.9", "99.99"])
    right.legend()
    figure.suptitle(title)
    figure.savefig(path, dpi=110)
    plt.close(figure)
