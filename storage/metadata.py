"""The metadata as a whole: every module that describes a table is imported here, so that none is missing where all tables are compared.

SQLModel describes tables; statements are Core and stand beside the functions that run them.
No index says postgresql_where: SQLAlchemy would import that dialect for it at every start, 34 ms.
Times are Unix seconds unless a name ends in `_ms`. JSON and sealed values are text. Flags are 0 or 1.
"""

from importlib import import_module
from pkgutil import iter_modules

from sqlmodel import SQLModel

import storage

__all__ = ["SQLModel"]

import_module("storage.engine.jobs")
for found in iter_modules(storage.__path__, "storage."):
    if not found.ispkg:
        import_module(found.name)
