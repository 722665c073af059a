"""The server: REST, live events and pages over one store."""
