"""Kill luthier's processes with SIGKILL at random moments, and check that no run is lost, doubled or invented.

    python -m benchmarks.kill [--kills 200] [--seed 0] [--only tuner,worker,server,supervisor,program]

A server, a worker and a tuner on the command line share one store. Killed are these three, the tuners that server and
worker start, the supervisors of runs, and the tuned program itself. The program leaves a trace of every execution, and
in the end the store is compared with that trace, run by run.
"""
