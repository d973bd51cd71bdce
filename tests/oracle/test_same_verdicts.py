"""Random, mutated and broken requests to Apache and to Barnabas get the same verdict."""

from pathlib import Path
from typing import Final

import pytest

from tests.oracle.verdicts import both, differing, request

pytestmark = pytest.mark.jvm

REQUESTS: Final = 300
#: Seeds at which the two once judged differently, and one of us was wrong.
FOUND: Final = (23, 60, 119)


def test_the_same_bytes_get_the_same_verdict(tmp_path: Path) -> None:
    """Closed, or the same error codes in the same places; what differs on purpose is told why."""
    seeds = [*FOUND, *(seed for seed in range(REQUESTS) if seed not in FOUND)]
    with both(tmp_path) as sides:
        found = [
            f"{asked}\n  Apache: {theirs}\n  ours:   {ours}"
            for asked, theirs, ours in differing(sides, seeds)
        ]
    assert not found, "\n".join(["", *found])


def test_a_request_is_its_seed() -> None:
    """What was found is found again by its seed."""
    assert request(7) == request(7)
    assert len({request(seed).frame for seed in range(100)}) > 90
