"""Decisions: from what is wanted and what was seen to ordered steps, each with its reason. Pure."""
