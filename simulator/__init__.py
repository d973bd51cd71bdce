"""Clusters of the broker's real cores, run in virtual time with faults."""
