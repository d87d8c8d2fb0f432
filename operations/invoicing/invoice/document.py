"""An invoice as the PDF that its recipient keeps, set by typst."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import orjson
from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from operations.invoicing.invoice.sheet import Sheet, sheet_of
from operations.invoicing.invoice.whole import MANY, DocumentRows
from storage.money.invoices import Invoice

TEMPLATE = Path(__file__).parent / "templates" / "invoice.typ"
# PDF/A-2b (ISO 19005-2) as typst makes it; no validator has checked it. It refuses a character that no installed font has: such a name
# is set as a plain PDF, where the character is a box, and copied as text it is itself.
ARCHIVED: Literal["a-2b"] = "a-2b"
PLAIN: Literal["1.7"] = "1.7"
PRESS = RunVar[CapacityLimiter]("press")
"""Long documents are set one after the other: one of thousands of lines takes seconds of all cores, and half a gigabyte."""


async def make_pdf(*, invoice: Invoice, rows: DocumentRows, issuer: str) -> bytes:
    """The document of `rows`, with the texts of `invoice`; the same figures give the same bytes on one machine. Setting 5,000 lines
    takes seconds, so it is done in a thread.
    """

    def work() -> bytes:
        sheet = sheet_of(invoice, rows.lines, issuer=issuer, month=rows.period.month, rest=rows.rest)
        return set_pdf(sheet, invoice.issued_at or invoice.created)

    return await to_thread.run_sync(work, limiter=press() if len(rows.lines) > MANY else None)


def press() -> CapacityLimiter:
    """The event loop's own."""
    try:
        return PRESS.get()
    except LookupError:
        made = CapacityLimiter(1)
        PRESS.set(made)
        return made


def set_pdf(sheet: Sheet, moment: int) -> bytes:
    """The sheet as a PDF; `moment` is when the document says that it was made."""
    import typst  # 78 MB of a library, loaded where a document is made

    try:
        return compiled(sheet, moment, ARCHIVED)
    except typst.TypstError:
        return compiled(sheet, moment, PLAIN)


def compiled(sheet: Sheet, moment: int, standard: Literal["a-2b", "1.7"]) -> bytes:
    """The template with the sheet in it."""
    import typst

    return typst.compile(
        TEMPLATE,
        format="pdf",
        sys_inputs={"sheet": orjson.dumps(sheet).decode()},
        pdf_standards=standard,
        timestamp=datetime.fromtimestamp(moment, UTC),
    )
