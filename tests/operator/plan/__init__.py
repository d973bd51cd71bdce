"""Tests of plans, which read as transcripts."""
