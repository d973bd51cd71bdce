"""Tests of barnabas_broker.controller."""
