"""What is kept of shops, and of orders on their way."""
