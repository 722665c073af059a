"""On-line sessions in REST and on pages."""
