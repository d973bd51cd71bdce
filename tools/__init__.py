"""The project's own tools."""
