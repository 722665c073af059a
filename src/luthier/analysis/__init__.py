"""What a history says: results, recommendations, verification, parameter importance."""
