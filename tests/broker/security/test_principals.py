"""Principals: how identities are written."""

import pytest

from barnabas_broker.security.principals import ANONYMOUS, Principal


def test_a_principal_is_written_kind_colon_name() -> None:
    """As in ACLs and super.users; names may hold colons, commas and equals signs."""
    for text in ("User:alice", "User:CN=a,OU=b:c", "Group:x", "User:"):
        assert str(Principal.parse(text)) == text
    assert Principal.parse("User:ANONYMOUS") == ANONYMOUS


@pytest.mark.parametrize("text", ["", "alice", ":alice"])
def test_what_is_no_principal(text: str) -> None:
    """A name without a kind is a mistake in a configuration file, not a user."""
    with pytest.raises(ValueError, match="written Kind:name"):
        Principal.parse(text)
