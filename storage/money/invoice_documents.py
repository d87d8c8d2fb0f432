"""The PDF of an invoice, kept as it was made."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.money.money_tables import InvoiceDocumentTable
from storage.statement import Command, Query, table

DOCUMENT = table(InvoiceDocumentTable)


class StoredDocument(NamedTuple):
    """The bytes, and their SHA-256 in hexadecimal."""

    content: bytes
    sha256: str


INSERT = Command(
    lambda dialect: (
        dialect.insert(DOCUMENT)
        .values({name: sa.bindparam(name) for name in ("invoice", "content", "sha256", "created")})
        .on_conflict_do_nothing(index_elements=["invoice"])
    )
)
FIND = Query(StoredDocument, sa.select(DOCUMENT.c.content, DOCUMENT.c.sha256).where(DOCUMENT.c.invoice == sa.bindparam("invoice")))


def insert_document(connection: Connection, *, invoice: str, content: bytes, sha256: str, now: float) -> None:
    """Keep a document; the first one of an invoice stays."""
    connection.run(INSERT, invoice=invoice, content=content, sha256=sha256, created=int(now))


def find_document(connection: Connection, *, invoice: str) -> StoredDocument | None:
    """The document of an invoice that has left draft."""
    return connection.first(FIND, invoice=invoice)
