"""Ways to run a configuration: a Python function, a command, a replay in virtual time."""
