"""Tests of the fuzzers, and what fuzzers have found."""
