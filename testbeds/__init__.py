"""Tuned systems to try luthier on: simulated ones in virtual time, with noise, and real ones in `real/`."""
