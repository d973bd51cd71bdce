"""Which offsets a reset is about."""

from typing import Any

import click
import pytest

from barnabas_broker.cli.groups.cluster import Described
from barnabas_broker.cli.groups.resetting import NAMES, Reset, refuse_active

NOTHING: dict[str, Any] = {
    **dict.fromkeys(NAMES), "topics": (), "all_topics": False, "execute": False, "dry_run": False,
}  # fmt: skip


def test_a_strategy_and_a_scope_are_needed() -> None:
    """An offset of 0 and a shift by 0 are strategies; a file has its scope in itself."""
    assert Reset.of(NOTHING | {"to_offset": 0, "all_topics": True}).value == 0
    assert Reset.of(NOTHING | {"shift_by": 0, "topics": ("t",)}).strategy == "shift_by"
    assert Reset.of(NOTHING | {"from_file": "plan.csv"}).strategy == "from_file"


@pytest.mark.parametrize(
    "given",
    [
        {"all_topics": True},
        {"to_offset": 0},
        {"to_offset": 0, "to_latest": True, "all_topics": True},
        {"to_latest": True, "all_topics": True, "topics": ("t",)},
        {"to_latest": True, "all_topics": True, "execute": True, "dry_run": True},
    ],
)
def test_what_contradicts_itself_is_refused(given: dict[str, Any]) -> None:
    """As wrong usage."""
    with pytest.raises(click.UsageError):
        Reset.of(NOTHING | given)


@pytest.mark.parametrize("state", ["Stable", "PreparingRebalance", "CompletingRebalance"])
def test_a_group_with_members_is_refused(state: str) -> None:
    """With its name and state."""
    group = Described("g", "Classic", state, "", "", ())
    with pytest.raises(click.ClickException, match=f"'g' is inactive.*{state}"):
        refuse_active(group)
    refuse_active(Described("g", "Classic", "Empty", "", "", ()))
