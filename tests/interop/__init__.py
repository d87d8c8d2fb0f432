"""Official clients of other languages, against a real server."""
