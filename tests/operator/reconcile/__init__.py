"""Tests of reconciling, on an API server in memory and a real broker."""
