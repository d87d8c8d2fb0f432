"""Which lines are being given up."""
