"""Storage: tables, statements, and plain synchronous functions of a connection. Imports only `registry`.

`engine`: how a database is opened, migrated and run, and how statements are written; it knows no table of what is kept but its own.
Beside it one file for each aggregate, with its tables, row types, statements and functions. `metadata` imports them all.
"""
