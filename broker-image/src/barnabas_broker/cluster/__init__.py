"""Immutable values that describe the cluster."""
