"""Groups of the next-generation protocol (KIP-848): the broker decides who reads what."""
