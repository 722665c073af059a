"""What repeated runs say: estimates, comparisons with confidence, noise, drift and outliers."""
