"""A simulated payment processor that speaks the real one's wire."""
