"""Tests of barnabas_broker.server.peers.replication."""
