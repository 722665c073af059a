"""Ways to run a configuration: a Python function, a local command, a Slurm job, a replay in virtual time."""
