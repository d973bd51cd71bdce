"""One module per kind of pipeline: arguments and wiring, nothing else."""
