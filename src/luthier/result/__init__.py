"""Conclusions from the runs of an experiment: results, recommendations, verification, parameter importance."""
