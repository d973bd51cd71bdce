"""Names of znodes."""

import re
from typing import Final

_FORBIDDEN: Final = re.compile(
    r"[/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]"
)
"""What no name of a znode holds, by ZooKeeper's PathUtils, which checks halves of characters."""


def is_znode_name(name: str) -> bool:
    """Whether a znode can be called so."""
    return name not in ("", ".", "..") and _FORBIDDEN.search(name) is None
