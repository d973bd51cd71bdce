"""Tests of barnabas_kafka.reassignment."""
