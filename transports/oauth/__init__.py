"""The built-in identity provider: the OAuth 2.1 endpoints for programs."""
