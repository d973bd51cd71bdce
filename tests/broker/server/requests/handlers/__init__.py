"""Tests of barnabas_broker.server.requests.handlers."""
