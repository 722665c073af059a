"""Where store, runner and engine are put together: start, resume, queue, worker."""
