"""The results of group requests: see `coordinator.results`."""

from typing import TYPE_CHECKING

from barnabas_broker.coordinator import results
from barnabas_broker.coordinator.results import Waiter

if TYPE_CHECKING:
    from barnabas_broker.coordinator.group.records import Record

    CoordinatorResult = results.CoordinatorResult[Record]
else:
    # There is one for each request, and to call the alias takes three times as long.
    CoordinatorResult = results.CoordinatorResult

__all__ = ["CoordinatorResult", "Waiter"]
