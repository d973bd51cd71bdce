"""Text as a line of a log shows it, whatever a client has put into its names."""


def printable(text: str) -> str:
    """The text with what cannot be printed escaped, line breaks among them."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
