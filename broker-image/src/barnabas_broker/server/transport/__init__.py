"""Bytes in and out: buffers, their memory, and counters of connections."""
