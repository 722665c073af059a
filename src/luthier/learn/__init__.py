"""Small numeric models that know nothing of tuning: arrays in, predictions with their deviation out."""
