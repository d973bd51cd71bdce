"""The custom resources on one machine, with real processes in temporary directories."""
