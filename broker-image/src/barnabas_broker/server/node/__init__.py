"""One broker: its parts, put together, started and stopped."""
