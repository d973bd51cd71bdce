"""Reads Java properties files, the form of `server.properties`.

As Java's `Properties.load` does: bytes are ISO 8859-1, `\\uXXXX` escapes other characters, a
backslash at the end of a line continues it, `=`, `:` or blanks end the key, the last of several
equal keys wins, and blanks at the end of a value are kept (keys drop them when they are read).
"""

from __future__ import annotations

from io import BytesIO

from .definitions import SettingError


def parse_properties(data: bytes, *, origin: str) -> dict[str, str]:
    """The settings in a file's bytes; raises SettingError naming `origin` and the line."""
    # Costs a broker that was given no file more than all settings together.
    import javaproperties

    entries: dict[str, str] = {}
    line = 1
    lines = javaproperties.parse(BytesIO(data))
    while True:
        try:
            element = next(lines, None)
        except javaproperties.InvalidUEscapeError as problem:
            message = f"line {line} or its continuation has a malformed escape {problem.escape}"
            raise SettingError(origin, None, message) from None
        if element is None:
            return entries
        line += max(1, len(element.source.splitlines()))
        if isinstance(element, javaproperties.KeyValue):
            entries[element.key] = element.value
