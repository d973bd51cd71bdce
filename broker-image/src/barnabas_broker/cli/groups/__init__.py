"""Consumer groups: their members, their lag, and resets of their offsets."""
