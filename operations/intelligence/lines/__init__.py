"""What is known of every line of a fleet: its days, its state, its use."""
