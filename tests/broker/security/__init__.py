"""Tests of barnabas_broker.security."""
