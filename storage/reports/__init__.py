"""What is kept of schedules and their reports."""
