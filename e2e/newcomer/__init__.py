"""Plays what the documents tell a newcomer to type, as a user who has nothing but a clone."""
