"""`reseller payments sync`: what the processor holds is read over its own wire."""

import asyncio
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from storage.connect_accounts import attach_connect_account
from storage.engine.store import open_store
from storage.payment_records import list_payment_records
from tests.billing_money.stage import OTHER_PAYEE, PAYEE, charge_json
from tests.cli.reseller import printed, refused, run_reseller
from tests.databases import sqlite_url
from tests.harness.thread_servers import serving_in_thread

BROKEN = OTHER_PAYEE


class Answering(BaseHTTPRequestHandler):
    """A processor with one charge in each account but one, which it fails at."""

    def do_GET(self) -> None:
        data = [charge_json()] if self.path.startswith("/v1/charges") else []
        body = json.dumps({"object": "list", "data": data, "has_more": False, "url": self.path}).encode()
        self.send_response_only(500 if self.headers.get("stripe-account") == BROKEN else 200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def processor() -> Iterator[dict[str, str]]:
    with serving_in_thread(ThreadingHTTPServer(("127.0.0.1", 0), Answering)) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        yield {
            "SERVICE_PAYMENTS_URL": url,
            "SERVICE_PAYMENTS_KEY": "sk_test_a1b2c3d4e5",
            "SERVICE_PAYMENTS_WEBHOOK_SECRET": "whsec_a1b2c3d4e5",
        }


def founded(folder: Path, name: str, account: str) -> str:
    organisation = printed("org", "create", name, "--tier", "pro", cwd=folder).strip()
    named = {"organisation": organisation, "account": account, "kind": "express", "status": "active"}

    async def attach() -> None:
        store = open_store(sqlite_url(folder / "data"))
        assert await store.write(attach_connect_account, **named, as_of=0.0, now=0.0)
        await store.aclose()

    asyncio.run(attach())
    return organisation


def kept(folder: Path, organisation: str) -> list[str]:
    async def read() -> list[str]:
        store = open_store(sqlite_url(folder / "data"))
        rows = await store.read(list_payment_records, account=PAYEE, organisation=organisation, kind="charge", most=9)
        await store.aclose()
        return [row.id for row in rows]

    return asyncio.run(read())


@pytest.mark.long
def test_every_account_is_read_and_a_second_time_there_is_nothing_new(processor: dict[str, str], tmp_path: Path) -> None:
    organisation = founded(tmp_path, "Fjord", PAYEE)
    assert printed("payments", "sync", cwd=tmp_path, **processor) == f"{organisation}: 1 record brought up to date at {PAYEE}\n"
    assert kept(tmp_path, organisation) == ["ch_1"]
    assert (
        printed("payments", "sync", organisation, cwd=tmp_path, **processor) == f"{organisation}: 0 records brought up to date at {PAYEE}\n"
    )


@pytest.mark.long
def test_a_processor_that_fails_at_one_account_is_asked_for_the_next(processor: dict[str, str], tmp_path: Path) -> None:
    broken, whole = founded(tmp_path, "Alpine", BROKEN), founded(tmp_path, "Fjord", PAYEE)
    done = run_reseller("payments", "sync", cwd=tmp_path, **processor)
    assert (done.returncode, f"{broken}: failed at {BROKEN}: " in done.stdout) == (1, True)
    assert f"{whole}: 1 record brought up to date at {PAYEE}\n" in done.stdout
    assert kept(tmp_path, whole) == ["ch_1"]


@pytest.mark.long
def test_what_cannot_be_synced_is_said(processor: dict[str, str], tmp_path: Path) -> None:
    printed("org", "create", "Fjord", cwd=tmp_path)
    assert printed("payments", "sync", cwd=tmp_path, **processor) == "No organisation has an account at the payment processor.\n"
    assert "`reseller org list` names them" in refused("payments", "sync", "org_x", cwd=tmp_path, **processor)[1]
    assert "simulated inside the running server" in refused("payments", "sync", cwd=tmp_path)[1]
