"""Jobs at submission: each gets the configuration that was found for a similar job.

Start reading at `matching`, then `server/queue.py`, where jobs are decided about; `ask.py` is what runs before a job.
"""
