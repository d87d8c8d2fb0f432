"""What is kept of lines: whose they are, and what the network told of them."""
