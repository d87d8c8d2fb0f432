"""The built-in identity provider's protocol: OAuth 2.1 for programs that act for people."""
