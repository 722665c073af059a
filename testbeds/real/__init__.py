"""Real tuned systems: the C programs of `testbeds/native/` on throttled storage."""
