"""Tests of the operator as a process."""
