"""Names of znodes."""

from __future__ import annotations

import pytest

from barnabas_broker.zk.names import is_znode_name


@pytest.mark.parametrize("name", ["a", "*", "a.b", "...", "CN=a, O=b", "\u00f6", "\U00002603"])
def test_valid_znode_names(name: str) -> None:
    """What tools name resources by."""
    assert is_znode_name(name)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "\x00", "a\n", "\x7f", "\ue000", "\U0001f600"]
)
def test_invalid_znode_names(name: str) -> None:
    """ZooKeeper refuses the whole request."""
    assert not is_znode_name(name)
