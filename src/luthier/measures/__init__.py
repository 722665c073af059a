"""From what a run left behind to a number, from repeats to an estimate, from two estimates to a verdict."""
