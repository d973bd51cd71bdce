"""Tests of the custom resources."""
