"""Jobs at submission in REST and on pages."""
