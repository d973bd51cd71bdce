"""Fuzzing of everything that reads bytes of others: targets, kept inputs, and how they are run."""
