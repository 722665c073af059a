"""What the next experiment can learn from earlier ones."""
