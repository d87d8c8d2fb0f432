"""Storage: tables, statements, and plain synchronous functions of a connection. Imports only `registry`.

Here: how a database is run (`store`, `sqlite`, `postgres`, `migrate`), how statements are said (`statement`), and the tables (`schema`).
In the rooms: what is kept, a file for each ledger. Every room uses what is here; of what is here only `schema` and `depth` know rooms.
"""
