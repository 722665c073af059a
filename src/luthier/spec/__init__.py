"""What people write, as validated objects: settings, parameters, command templates, component and experiment files."""
