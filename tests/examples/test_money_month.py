"""The example of a month of money, run as a program against a service on the embedded default; and that it would find a wrong cent."""

import json
import re
from pathlib import Path

import httpx
import pytest

from tests.examples.conftest import command, program
from tests.harness.processes import Running


@pytest.mark.long
def test_records_become_an_invoice_that_is_paid_and_adds_up(server: Running, tmp_path: Path) -> None:
    """The command of the tour, but that it keeps the records."""
    records, key = tmp_path / "records.csv", str(server.api_key)
    done = program("money_month.py", *command("money_month", server), "--records", str(records), RESELLER_API_KEY=key)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1].startswith("100 SIMs, total ") and lines[-1].endswith(" cents, differences: 0")
    assert re.fullmatch(r"invoice MONTH-\d{4}-000001 is paid", lines[-3])
    assert "of application/pdf" in lines[-2]
    with httpx.Client(base_url=server.base_url, headers={"Authorization": f"Bearer {key}"}) as http:
        period = http.get("/v1/invoices/periods").json()["data"][0]
    assert period["status"] == "invoiced"
    paid = records.with_suffix(".json")
    invoice = json.loads(paid.read_text())
    invoice["line_items"][0]["amount_cents"] += 1
    paid.write_text(json.dumps(invoice))
    again = program("recompute_invoice.py", str(records), str(paid))
    assert again.returncode == 1
    assert again.stdout.count("\n") == 2
    assert again.stdout.endswith("differences: 1\n")


def test_a_record_that_is_missing_from_the_file_is_found(tmp_path: Path) -> None:
    records, invoice = tmp_path / "records.csv", tmp_path / "invoice.json"
    records.write_text("id,iccid,occurred_at,bytes_up,bytes_down\na,8988303000000000001,2026-10-01T00:00:00Z,1,999999999\n")
    line = {"iccid": "8988303000000000001", "bytes_up": 1, "bytes_down": 999_999_999, "amount_cents": 125, "unit_price_cents": 125}
    other = line | {"iccid": "8988303000000000002"}
    sums = {"subtotal_cents": 125, "tax_cents": 0, "platform_fee_cents": 1, "total_cents": 126}
    invoice.write_text(json.dumps({"period": {"year": 2026, "month": 10}, "line_items": [line], **sums}))
    assert program("recompute_invoice.py", str(records), str(invoice)).stdout == "1 SIMs, total 126 cents, differences: 0\n"
    invoice.write_text(json.dumps({"period": {"year": 2026, "month": 10}, "line_items": [line, other], **sums}))
    assert program("recompute_invoice.py", str(records), str(invoice)).stdout.splitlines()[0] == (
        "8988303000000000002: (1, 999999999, 125) on the invoice, None from the records"
    )
