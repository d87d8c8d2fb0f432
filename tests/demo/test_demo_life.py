"""The life of the demo: what its first start makes by itself, that it is the same each time, and when there is none."""

import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from inline_snapshot import snapshot

from tests.harness.processes import Running, running
from transports.settings_files import load_settings

LIVELY = {"SERVICE_DEMO_LIFE": "true"}
PATIENCE = 180.0
"""Seconds that a loaded machine may take; an idle one takes a tenth of it."""
OWN_FAMILIES = ("order.", "invoice.", "payment.", "esim.", "work.", "usage.")
"""Types of events that the life makes; how many lines are told of meanwhile is a question of time."""


def rows(http: httpx.Client, path: str, **query: str) -> list[dict[str, Any]]:
    answer = http.get(path, params=query)
    assert answer.status_code == 200, (path, answer.text)
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


def facts(found: Sequence[Mapping[str, Any]], *names: str) -> list[tuple[object, ...]]:
    """These fields of each row, without the order in which the rows came about."""
    return sorted((tuple(row.get(name) for name in names) for row in found), key=repr)


def life_of(http: httpx.Client) -> dict[str, object]:
    """Everything that the life made, without ids and times."""
    orders = rows(http, "/v1/storefronts/orders") + rows(http, "/v1/storefronts/orders", status="pending_payment")
    endpoints = {row["id"]: row["url"].rsplit("/", 1)[-1] for row in rows(http, "/v1/connectivity/webhook_endpoints")}
    deliveries = rows(http, "/v1/connectivity/deliveries", limit="100")
    intents = rows(http, "/v1/connectivity/intents")
    return {
        "orders": sorted((row["plan"], row["status"], row["refund"] or "", row["top_ups"]) for row in orders),
        "products": facts(rows(http, "/v1/connectivity/products"), "name", "price"),
        "intents": sorted((str((row["plan"] or {}).get("name")), row["status"]) for row in intents),
        "usage": sorted(
            record["quantity_mb"] for row in intents for record in rows(http, "/v1/connectivity/usage_records", intent=row["id"])
        ),
        "invoices": facts(rows(http, "/v1/invoices"), "status", "currency", "total_cents", "recipient_name"),
        "charges": facts(rows(http, "/v1/operator-billing/charges"), "amount", "status", "disputed", "amount_refunded", "failure_code"),
        "refunds": facts(rows(http, "/v1/operator-billing/refunds"), "amount", "status"),
        "disputes": facts(rows(http, "/v1/operator-billing/disputes"), "amount", "reason"),
        "payouts": facts(rows(http, "/v1/operator-billing/payouts"), "amount", "currency"),
        "reviews": facts(rows(http, "/v1/operator-billing/fraud/reviews"), "open", "reason"),
        "promotions": facts(rows(http, "/v1/operator-billing/promotions"), "code", "percent_off"),
        "endpoints": sorted(endpoints.values()),
        "deliveries": sorted({(endpoints.get(row["endpoint"], ""), row["state"]) for row in deliveries}),
        "approvals": facts(rows(http, "/v1/approvals"), "state", "operation", "reason"),
        "changes": sorted((row["action"], row["state"], row["counts"]["done"], "undo_of" in row) for row in rows(http, "/v1/changes")),
        "schedules": [(row["composite"], row["last_report"]["state"]) for row in rows(http, "/v1/intelligence/schedules")],
        "tags": sorted((row["tag"], row["lines"]) for row in rows(http, "/v1/tags")),
        "keys": sorted(row["name"] for row in rows(http, "/v1/api-keys")),
        "events": sorted(told_types(http)),
    }


def told_types(http: httpx.Client) -> set[str]:
    return {row["type"] for family in OWN_FAMILIES for row in rows(http, "/v1/connectivity/events", types=f"{family}*")}


def wait_until_whole(server: Running, data: Path) -> float:
    """Seconds from the first answer until the server says that the life is whole."""
    log, began = data.with_name(f"{data.name}.log"), time.monotonic()
    while "more to look at now" not in log.read_text():
        assert time.monotonic() - began < PATIENCE, log.read_text()[-2000:]
        assert server.process.poll() is None
        time.sleep(0.1)
    assert "the demo's" not in log.read_text()  # a part that failed is named so
    return time.monotonic() - began


def open_client(server: Running, key: str | None) -> httpx.Client:
    http = httpx.Client(base_url=server.base_url, headers={"Authorization": f"Bearer {key}"}, timeout=60)
    assert http.get("/health").status_code == 200
    return http


def test_each_first_start_of_a_demo_tells_the_same_story_once(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    with running(one, LIVELY) as first, running(other, LIVELY) as second:
        key = first.api_key
        with open_client(first, key) as http, open_client(second, second.api_key) as beside:
            wait_until_whole(first, one)
            wait_until_whole(second, other)
            life = life_of(http)
            assert life_of(beside) == life
            assert life == snapshot()
    with running(one, LIVELY) as again, open_client(again, key) as http:
        assert again.api_key is None
        assert life_of(http) == life
    with closing(sqlite3.connect(one / "service.db")) as database:
        assert database.execute("select count(*) from organisations").fetchone() == (1,)


@pytest.mark.parametrize(
    "given",
    [
        {"SERVICE_DEMO": "false"},
        {"SERVICE_DEMO_LIFE": "false"},
        {"SERVICE_WORKER": "false"},
        {"SERVICE_OCS_URL": "http://127.0.0.1:8090", "SERVICE_OCS_TOKEN": "token-of-a-real-network"},
        {"SERVICE_PAYMENTS_KEY": "sk_test_12345678", "SERVICE_PAYMENTS_WEBHOOK_SECRET": "whsec_12345678"},
    ],
)
def test_there_is_no_life_where_there_is_no_demo_or_a_system_is_real_or_nothing_works_on_it(given: dict[str, str]) -> None:
    assert (load_settings({}).with_demo_life, load_settings(given).with_demo_life) == (True, False)
