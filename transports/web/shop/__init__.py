"""The hosted shops: plans, checkout, and the pages of orders."""
