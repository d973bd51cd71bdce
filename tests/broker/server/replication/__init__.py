"""Tests of barnabas_broker.server.replication."""
