"""Strategies: what each client of a running program runs next, and how many samples decide."""
