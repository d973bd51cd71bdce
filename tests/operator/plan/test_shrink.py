"""How many brokers run, as situations."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from barnabas_operator.plan.shrink import brokers_to_run


@pytest.mark.parametrize(
    ("asked", "existing", "claims", "replicas", "size", "words"),
    [
        (3, 0, (), None, 3, ""),
        (3, 1, (0,), {0: 9}, 3, ""),
        (1, 30, range(30), {0: 9}, 1, ""),
        (1, 3, range(3), {0: 9, 2: 4}, 3, "broker 2 holds 4 replicas"),
        (1, 3, range(3), {0: 9, 1: 4}, 2, "broker 1 holds 4 replicas"),
        (1, 3, range(3), {0: 9, 2: 0}, 1, ""),
        (1, 3, range(3), None, 3, "not known"),
        # Removed a moment ago, and a topic was created on it in that moment.
        (1, 1, range(3), {0: 9, 2: 1}, 3, "broker 2 holds 1 replicas"),
        # Not a broker of ours: nothing that could be brought back.
        (1, 1, range(1), {0: 9, 1001: 4}, 1, ""),
    ],
)
def test_size(
    asked: int,
    existing: int,
    claims: tuple[int, ...],
    replicas: Mapping[int, int] | None,
    size: int,
    words: str,
) -> None:
    """No broker that may hold replicas is removed; the message says which hold how many."""
    found = brokers_to_run(asked, existing, claims, replicas)
    assert found.replicas == size
    assert words in found.kept
    assert bool(words) == bool(found.kept)
