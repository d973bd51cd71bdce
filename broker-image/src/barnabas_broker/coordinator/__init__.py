"""Coordinators: what groups of clients agree on, kept in internal topics of the cluster."""
