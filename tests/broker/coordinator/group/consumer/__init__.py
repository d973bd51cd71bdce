"""Scenarios and rules of groups of the consumer protocol."""
