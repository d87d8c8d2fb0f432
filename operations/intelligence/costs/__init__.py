"""What lines cost, and where."""
