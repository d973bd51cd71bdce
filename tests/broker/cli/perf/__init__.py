"""Tests of the measuring commands."""
