"""The worker: time is a door too, and lets in what is due."""
