"""Tests of barnabas_broker.cli.reassign."""
