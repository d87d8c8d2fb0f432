"""Logic that two or more parts use."""
