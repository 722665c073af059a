"""Real tuned systems: the C programs of `native/` on throttled storage."""
