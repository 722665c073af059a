"""The commands of I/O."""
