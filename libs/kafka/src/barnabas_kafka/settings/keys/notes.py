"""Why whole families of settings have no counterpart here, said once."""

from __future__ import annotations

from typing import Final

NO_JAVA: Final = "Java classes cannot be loaded."
NO_SHARES: Final = "Share groups are not offered."
NO_TIERS: Final = "Tiered storage is not offered."
ZOOKEEPER_ONLY: Final = "This broker runs in ZooKeeper mode only."
