"""Requests between the brokers of a cluster, and replication."""
