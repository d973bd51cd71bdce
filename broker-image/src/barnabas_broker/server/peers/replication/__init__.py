"""Replication between brokers: what a leader serves to followers, and how a follower fetches."""
