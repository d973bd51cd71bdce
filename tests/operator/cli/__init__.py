"""Tests of the operator's commands."""
