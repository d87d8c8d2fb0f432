"""Lines: what the operator sees of them and does with them."""
