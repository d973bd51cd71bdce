"""Text as a line of a log shows it."""

import pytest

from barnabas_broker.printable import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("User:alice", "User:alice"),
        ("User:Jan Němec", "User:Jan Němec"),
        ("a\nb\r\t\0", "a\\nb\\r\\t\\x00"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\u202enimda\u2028", "\\u202enimda\\u2028"),
        ("\ud800", "\\ud800"),
    ],
)
def test_unprintable_characters_are_escaped(text: str, shown: str) -> None:
    """Line breaks, codes for terminals, and what changes the direction of what follows."""
    assert printable(text) == shown
