"""What holds for every test of the broker: no invariant is violated unheard."""

from collections.abc import Iterator

import pytest

from barnabas_broker.invariants import on_violation


@pytest.fixture(autouse=True)
def violations() -> Iterator[list[str]]:
    """The invariants violated in this test; one that means to violate any empties the list.

    The assertion alone would not do: what runs in a broker catches many errors.
    """
    found: list[str] = []
    with on_violation(lambda invariant, _state: found.append(invariant)):
        yield found
    assert found == []
