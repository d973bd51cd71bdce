"""Tests of the operator: without a cluster, with a real broker where one is asked."""
