"""The OpenAPI 3.1 description of the service, derived from the catalogue."""
