"""The Barnabas broker engine."""

__version__ = "0.1.0"
"""Also what the distribution is built as; reading it from installed metadata costs 30 ms."""
