"""Consumer groups from outside: who is in them, how far they are, and where they go on."""
