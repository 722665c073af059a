"""Input and output of programs: counted, changed, predicted, and cut out of C programs as I/O kernels.

Start reading at `counts.py`; `kernel` makes kernels, and `tuning.py` tunes with them.
"""
