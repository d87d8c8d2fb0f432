"""Recompute an invoice from the raw call records, with nothing of the service's: exact fractions, and a different way to round.

    reseller cdr import october.csv
    curl -s -H "Authorization: Bearer $KEY" $URL/v1/invoices/inv_... > invoice.json
    python examples/recompute_invoice.py october.csv invoice.json

Prints every figure that differs and ends with 1, or says that nothing does. A record that comes twice counts once.
"""

import csv
import json
import sys
from collections import defaultdict
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

GIGABYTE = Fraction(10) ** 9


def month_of(text: str) -> tuple[int, int]:
    """The UTC month of a record."""
    moment = datetime.fromtimestamp(int(text), UTC) if text.isdigit() else datetime.fromisoformat(text).astimezone(UTC)
    return moment.year, moment.month


def used(path: Path, year: int, month: int) -> dict[str, list[int]]:
    """Bytes up and down of each SIM in the month."""
    seen: set[str] = set()
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    with path.open(newline="", encoding="utf-8-sig") as file:
        for row in csv.DictReader(file):
            if row["id"] in seen or month_of(row["occurred_at"]) != (year, month):
                continue
            seen.add(row["id"])
            sums[row["iccid"]][0] += int(row["bytes_up"])
            sums[row["iccid"]][1] += int(row["bytes_down"])
    return sums


def cents(exact: Fraction) -> int:
    """Half-up to a whole cent, by decimal arithmetic."""
    digits = Decimal(exact.numerator) / Decimal(exact.denominator)
    return int(digits.quantize(Decimal(1), rounding=ROUND_HALF_UP))


def expected(sums: dict[str, list[int]], price: int, bps: int) -> dict[str, Any]:
    """Every figure of the invoice."""
    lines = {iccid: (up, down, cents(Fraction(up + down) * price / GIGABYTE)) for iccid, (up, down) in sums.items()}
    subtotal = sum(amount for _, _, amount in lines.values())
    fee = cents(Fraction(subtotal * bps, 10_000))
    return {"lines": lines, "subtotal_cents": subtotal, "tax_cents": 0, "platform_fee_cents": fee, "total_cents": subtotal + fee}


def differences(invoice: dict[str, Any], figures: dict[str, Any]) -> list[str]:
    """What the invoice says otherwise."""
    sums = {name: value for name, value in figures.items() if name != "lines" and invoice[name] != value}
    found = [f"{name}: {invoice[name]} on the invoice, {value} from the records" for name, value in sums.items()]
    shown = {line["iccid"]: (line["bytes_up"], line["bytes_down"], line["amount_cents"]) for line in invoice["line_items"]}
    if len(shown) != len(invoice["line_items"]):
        found.append("a SIM has two lines")
    for iccid in sorted(shown.keys() | figures["lines"].keys()):
        if shown.get(iccid) != figures["lines"].get(iccid):
            found.append(f"{iccid}: {shown.get(iccid)} on the invoice, {figures['lines'].get(iccid)} from the records")
    return found


def main(records: str, invoice_file: str, bps: int) -> int:
    invoice = json.loads(Path(invoice_file).read_text())
    period = invoice["period"]
    price = invoice["line_items"][0]["unit_price_cents"]
    figures = expected(used(Path(records), period["year"], period["month"]), price, bps)
    found = differences(invoice, figures)
    for text in found:
        print(text)
    total = figures["total_cents"]
    print(f"{len(figures['lines'])} SIMs, total {total} cents, differences: {len(found)}")
    return int(bool(found))


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    try:
        sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) == 4 else 100))
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}")
