"""Typed definitions of broker and topic settings."""
