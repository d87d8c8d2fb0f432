"""The payment processor."""
