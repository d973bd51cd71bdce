"""Coordinators: pure cores told as stories, and their shells on real logs."""
