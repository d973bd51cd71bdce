"""Tests of the builders, by golden manifests."""
