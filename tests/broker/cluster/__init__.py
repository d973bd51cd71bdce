"""Tests of barnabas_broker.cluster."""
