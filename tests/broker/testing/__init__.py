"""Tests of the brokers for other projects' tests."""
