"""Ways to run a configuration: a function, a command, a Slurm job, a job through PSI/J, a replay in virtual time."""
