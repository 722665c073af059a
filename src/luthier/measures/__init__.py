"""Measures: each turns the output of a run, or what was noted about it, into a number."""
