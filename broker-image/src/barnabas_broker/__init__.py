"""The Barnabas broker engine."""
