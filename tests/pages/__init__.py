"""The pages of the built-in identity provider, through the whole application, as a browser uses them."""
