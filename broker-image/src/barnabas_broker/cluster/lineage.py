"""What each image changed in the one before it, which saves comparing both.

A listener to images (replicas, coordinators, the channels to other brokers) needs the partitions
that differ from the image that it took last. Among thousands of topics looking for them costs more
than all that is done about them. So each image knows the last steps that led to it.

Invariant: of two images of which one descends from the other by noted steps, topics and partitions
that no step names are the same objects. An image made in another way has no steps, and is compared
as a whole.
"""

from collections.abc import Mapping
from typing import Final

Touched = Mapping[str, frozenset[int] | None]
"""Partitions by topic that may differ; None for a topic that may differ in any part, or be gone."""

STEPS_MAX: Final = 64
"""A follower that is further behind compares everything, which it then has much to do with."""

PARTITIONS_PER_STEP_MAX: Final = 1000
"""A step that changes more, topics as a whole counted once, is not noted: what follows costs more
than the comparison. It bounds what the steps hold."""


class Lineage:
    """The steps to one image, each with the image it began at; `image` is this one.

    It is an object of its own so that an image does not keep all those before it.
    """

    __slots__ = ("image", "steps")

    def __init__(self, steps: tuple[tuple[object, Touched], ...] = ()) -> None:
        self.image = object()
        self.steps = steps

    def then(self, touched: Touched) -> "Lineage":
        """That of the next image, in which no more than this differs."""
        count = sum(1 if numbers is None else len(numbers) for numbers in touched.values())
        if count > PARTITIONS_PER_STEP_MAX:
            return Lineage()
        return Lineage((*self.steps[1 - STEPS_MAX :], (self.image, touched)))

    def since(self, earlier: "Lineage") -> Touched | None:
        """What may differ from an earlier image; None where that is not known."""
        if earlier is self:
            return {}
        for number in range(len(self.steps) - 1, -1, -1):
            if self.steps[number][0] is earlier.image:
                return _together([touched for _, touched in self.steps[number:]])
        return None


def _together(steps: list[Touched]) -> Touched:
    if len(steps) == 1:
        return steps[0]
    together: dict[str, frozenset[int] | None] = {}
    for step in steps:
        for name, numbers in step.items():
            before = together.get(name, frozenset())
            together[name] = None if before is None or numbers is None else before | numbers
    return together
