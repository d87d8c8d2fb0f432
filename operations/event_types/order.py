"""Events of orders in shops."""
