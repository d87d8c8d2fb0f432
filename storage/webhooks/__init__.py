"""What is kept of events and their deliveries."""
