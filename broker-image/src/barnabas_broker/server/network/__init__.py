"""Connections of clients: accepted, protected, authenticated and served in order."""
