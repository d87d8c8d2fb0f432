"""What packages lines need, have and could have."""
