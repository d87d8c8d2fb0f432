"""What stands on an invoice, as text: the PDF and the page are both made of it, so they cannot say different things."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from typing_extensions import TypedDict

from operations.services.plain_line import MISLEADING
from storage.money.invoice_lines import InvoiceLineRow, LineSums
from storage.money.invoices import Invoice

MOST_LISTED = 10_000
"""Choice: what comes after so many SIMs is one row with its sum: a longer document would take gigabytes to set, and nobody reads it."""
GB_NAME = "1 GB = 1,000,000,000 bytes"
NO_REST = LineSums(0, 0, 0, 0)
DRAFT = "This is a draft: it is no invoice yet, and its number is kept for it."
VOID = "This invoice is void: nothing is owed on it."


class Sheet(TypedDict):
    """Every text of an invoice. `facts` and `sums` are names with values; `lines` are cells under `columns`."""

    title: str
    heading: str
    number: str
    issuer: str
    recipient: str
    email: str
    facts: list[list[str]]
    stamp: str
    columns: list[str]
    lines: list[list[str]]
    sums: list[list[str]]
    total: str
    due: str
    pay: str
    notes: list[str]
    small: list[str]


COLUMNS = ["#", "ICCID", "Network", "Bytes up", "Bytes down", "GB", "Amount"]


def sheet_of(invoice: Invoice, lines: Sequence[InvoiceLineRow], *, issuer: str, month: int, rest: LineSums = NO_REST) -> Sheet:
    """The texts. Figures are those that were frozen; nothing is computed anew but how they are written.

    `lines` are listed, at most MOST_LISTED; `rest` is what the lines behind them add up to. `month` is YYYYMM.
    """
    draft = invoice.status == "draft"
    currency = invoice.currency
    heading = "DRAFT INVOICE" if draft else "INVOICE"
    due = "" if draft or invoice.due_at is None else f"Due on {day(invoice.due_at)}: {money(invoice.total_cents)} {currency}."
    return {
        "title": f"{'Draft invoice' if draft else 'Invoice'} {invoice.number}",
        "heading": heading,
        "number": invoice.number,
        "issuer": shown(issuer),
        "recipient": shown(invoice.recipient_name or ""),
        "email": shown(invoice.recipient_email or ""),
        "facts": facts_of(invoice, month),
        "stamp": DRAFT if draft else VOID if invoice.status == "void" else "",
        "columns": [*COLUMNS[:-1], f"Amount ({currency})"],
        "lines": rows_of(lines, rest),
        "sums": sums_of(invoice, lines, rest),
        "total": f"{money(invoice.total_cents)} {currency}",
        "due": due,
        "pay": "" if draft else invoice.pay_url or "",
        "notes": [shown(line) for line in (invoice.notes or "").splitlines()],
        "small": [
            f"Amounts are computed from bytes, not from the rounded GB: {GB_NAME}; each line is rounded half-up to the cent.",
            "Months, days and hours are UTC.",
            *([] if not rest.lines else [f"The first {count(MOST_LISTED)} SIMs are listed; the last row adds up all others."]),
        ],
    }


def facts_of(invoice: Invoice, month: int) -> list[list[str]]:
    """What stands beside the recipient."""
    first, last = days_of(month)
    found = [["Invoice number", invoice.number], ["Period", f"{day_of(first)} to {day_of(last)}"]]
    if invoice.issued_at is not None:
        found.append(["Issued", day(invoice.issued_at)])
    if invoice.due_at is not None:
        found.append(["Due", day(invoice.due_at)])
    found.append(["Currency", invoice.currency])
    found.append(["Price per GB", f"{money(invoice.price_per_gb_cents)} {invoice.currency}"])
    return found


def sums_of(invoice: Invoice, lines: Sequence[InvoiceLineRow], rest: LineSums) -> list[list[str]]:
    """What adds up to the total."""
    used = sum(line.bytes_up + line.bytes_down for line in lines) + rest.bytes_up + rest.bytes_down
    currency, lines_in_all = invoice.currency, len(lines) + rest.lines
    sims = f"{count(lines_in_all)} SIM{'' if lines_in_all == 1 else 's'}"
    return [
        ["Data used", f"{count(used)} bytes"],
        ["", f"{gigabytes(used)} GB on {sims}"],
        ["Subtotal", f"{money(invoice.subtotal_cents)} {currency}"],
        ["Tax (0 %)", f"{money(invoice.tax_cents)} {currency}"],
        [f"Platform fee ({percent(invoice.platform_fee_bps)})", f"{money(invoice.platform_fee_cents)} {currency}"],
    ]


def rows_of(lines: Sequence[InvoiceLineRow], rest: LineSums) -> list[list[str]]:
    """A row for each SIM, and one for those that are too many; they add up to the subtotal all the same."""
    rows = [cells(number, line) for number, line in enumerate(lines, 1)]
    if rest.lines:
        sims = f"{count(rest.lines)} more SIM{'' if rest.lines == 1 else 's'}"
        used = gigabytes(rest.bytes_up + rest.bytes_down)
        rows.append(["", sims, "", count(rest.bytes_up), count(rest.bytes_down), used, money(rest.amount_cents)])
    return rows


def cells(number: int, line: InvoiceLineRow) -> list[str]:
    """One SIM's line."""
    place = " ".join(shown(part) for part in (line.network, line.country and f"({line.country})") if part)
    used = gigabytes(line.bytes_up + line.bytes_down)
    return [str(number), line.iccid, place, count(line.bytes_up), count(line.bytes_down), used, money(line.amount_cents)]


def shown(text: str) -> str:
    """A text of somebody else's on one line, without what changes how the text around it reads."""
    return " ".join(MISLEADING.sub(" ", text).split())


def money(cents: int) -> str:
    """Minor units as an amount: 123456 is 1,234.56."""
    return f"{cents // 100:,}.{cents % 100:02d}"


def count(number: int) -> str:
    """With thousands separated."""
    return f"{number:,}"


def gigabytes(used: int) -> str:
    """Rounded half-up to a thousandth, for people."""
    thousandths = (2 * used + 10**6) // (2 * 10**6)
    return f"{thousandths // 1000:,}.{thousandths % 1000:03d}"


def percent(bps: int) -> str:
    """Basis points as per cent."""
    return f"{bps // 100}.{bps % 100:02d} %"


def day(moment: int) -> str:
    """The UTC day of a moment."""
    return day_of(datetime.fromtimestamp(moment, UTC).date())


def day_of(value: date) -> str:
    """A day that no country reads as another."""
    return f"{value.day} {value:%b %Y}"


def days_of(month: int) -> tuple[date, date]:
    """The first and the last day of YYYYMM."""
    first = date(month // 100, month % 100, 1)
    return first, (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
