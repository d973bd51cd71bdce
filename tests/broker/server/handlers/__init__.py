"""Tests of barnabas_broker.server.handlers."""
