"""Time limits as options have them: seconds, of which every library below takes as many."""

from __future__ import annotations

import math
from typing import Any, Final

import click

LONGEST_S: Final = 3600
"""librdkafka takes no longer limit for a request."""
DAY_S: Final = 86_400


class Seconds(click.FloatRange):
    """A number of seconds above zero, or from zero on."""

    def __init__(self, *, zero: bool = False, longest_s: float = LONGEST_S) -> None:
        super().__init__(min=0, max=longest_s, min_open=not zero)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Refuse what no clock reaches: a NaN is within every range."""
        found: float = super().convert(value, param, ctx)
        if math.isnan(found):
            self.fail(f"{value!r} is not a number of seconds.", param, ctx)
        return found
