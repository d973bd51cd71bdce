"""Tests of barnabas_kafka.protocol."""
