"""What is known of a line: its days, its habits, its use."""
