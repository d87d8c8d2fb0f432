"""Storage: tables, statements, and plain synchronous functions of a connection. Imports only `registry`."""
