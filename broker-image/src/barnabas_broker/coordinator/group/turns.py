"""The turns of groups: see `coordinator.turns`."""

from typing import TYPE_CHECKING

from barnabas_broker.coordinator import turns
from barnabas_broker.coordinator.turns import Waiter

if TYPE_CHECKING:
    from barnabas_broker.coordinator.group.records import Record

    Turn = turns.Turn[Record]
else:
    # There is one for each request, and to call the alias takes three times as long.
    Turn = turns.Turn

__all__ = ["Turn", "Waiter"]
