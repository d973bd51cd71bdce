"""Groups of the next-generation protocol (KIP-848): the broker assigns partitions."""
