"""The HTTP door, over the real pipeline and the real store."""
