"""What people see: the command line and its tables."""
