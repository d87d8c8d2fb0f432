"""What an empty database gets in demo mode."""
