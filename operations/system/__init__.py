"""Is the service up, and which build is it."""
