"""Tuning of programs while they run: strategies, on-line sessions, their service and its clients."""
