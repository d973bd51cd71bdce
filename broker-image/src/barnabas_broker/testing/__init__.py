"""Brokers for other projects' tests."""
