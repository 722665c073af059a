"""The loop: plan, run, record, recover, verify."""
