"""The partition log, against real files."""
