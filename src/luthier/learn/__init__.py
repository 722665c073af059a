"""Small numeric models that are independent of tuning: arrays in, predictions with standard deviations out."""
