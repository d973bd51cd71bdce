"""Tests of barnabas_kafka.settings."""
