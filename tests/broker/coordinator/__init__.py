"""Coordinators: pure cores tested by scenarios, and their shells on real logs."""
