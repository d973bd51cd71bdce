"""The runner behind `make test`, with suites of a few lines in a directory of the test's own."""
