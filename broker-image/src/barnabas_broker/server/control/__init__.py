"""The controller's thread, and what a broker keeps in the coordination data."""
