"""Compaction, from the choice of a log to the bytes that are left."""
