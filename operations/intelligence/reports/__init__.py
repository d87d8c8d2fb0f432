"""Reports as people read them, and as strangers may."""
