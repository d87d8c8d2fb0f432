"""Which events there are, and who is told of them."""
