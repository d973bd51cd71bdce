"""Broker processes on disks that fail, and the failing disk itself."""
