"""Tuning of programs that are not changed: their settings are written, reloaded, measured and guarded."""
