"""Tests of barnabas_broker.quota."""
