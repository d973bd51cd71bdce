"""Coordinators: pure cores told as scenarios, and their shells on real logs."""
