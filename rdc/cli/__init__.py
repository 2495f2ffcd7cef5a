"""The command line: one file per verb; wires and prints, nothing else."""
