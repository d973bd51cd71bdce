"""Tests of groups from outside."""
