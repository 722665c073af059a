"""The commands of on-line tuning."""
