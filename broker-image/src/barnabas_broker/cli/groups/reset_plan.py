"""Reset plans as CSV, in the format of Kafka's `--export` and `--from-file`.

One group: `topic,partition,offset`. Several: `group,topic,partition,offset`. There is no heading;
names that need it are in quotes.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping

from barnabas_broker.cli.groups.strategies import Partition

Plans = Mapping[str, Mapping[Partition, int]]
"""Of each group, the offset each partition gets."""


def written(plans: Plans, *, alone: bool) -> str:
    """The plans; without the name of a group that was asked for `alone`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for group, offsets in plans.items():
        beginning = () if alone else (group,)
        writer.writerows((*beginning, *each, offset) for each, offset in offsets.items())
    return text.getvalue()


def read(text: str, groups: tuple[str, ...]) -> dict[str, dict[Partition, int]]:
    """Plans from a file; lines without a group are for the one there is.

    Raises ValueError naming the line that is none, or is of another kind than the first.
    """
    plans: dict[str, dict[Partition, int]] = {}
    width = 0
    for number, row in enumerate(csv.reader(io.StringIO(text)), 1):
        if not row:
            continue
        width = width or len(row)
        try:
            *group, topic, partition, offset = row
            if len(row) != width or len(group) > 1:
                raise ValueError
            each = (topic, int(partition)), int(offset)
        except ValueError:
            raise ValueError(
                f"line {number}: {','.join(row)} is neither topic,partition,offset "
                "nor group,topic,partition,offset"
            ) from None
        if not group and len(groups) != 1:
            raise ValueError("without a group in each line it can be for one group only")
        plans.setdefault(group[0] if group else groups[0], {})[each[0]] = each[1]
    return plans
