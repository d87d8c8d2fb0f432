"""Mail that the service sends."""
