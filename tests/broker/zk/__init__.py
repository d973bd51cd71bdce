"""Tests of barnabas_broker.zk."""
