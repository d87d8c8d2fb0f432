"""Money at the payment processor."""
