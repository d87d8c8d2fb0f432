"""Views of the fleet as a whole, made of the read model."""
