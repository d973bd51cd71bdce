"""Scenarios on a real Kubernetes: kind, one cluster of 1 + 3 nodes for all of them."""
