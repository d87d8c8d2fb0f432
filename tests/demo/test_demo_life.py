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

from tests.harness.cluster import KEYS
from tests.harness.processes import Running, running
from transports.settings_files import load_settings

LIVELY = {"SERVICE_DEMO_LIFE": "true"}
PATIENCE = 180.0
"""Seconds that a loaded machine may take; an idle one takes a tenth of it."""
OWN_FAMILIES = ("order.", "invoice.", "payment.", "esim.", "work.", "usage.")
"""Types of events that the life makes; how many lines are told of meanwhile is a question of time."""


OPEN_ISSUANCES = "select state, obstacle from issuance where state not in ('issued', 'failed') order by key"


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
    deliveries = [row for state in ("failed", "delivered") for row in rows(http, "/v1/connectivity/deliveries", state=state)]
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


def wait_until_whole(http: httpx.Client, server: Running, data: Path) -> dict[str, object]:
    """The life, once the server says that it is whole, and the worker has looked at what is unknown. It begins after the first answer."""
    assert http.get("/health").status_code == 200
    log, began = data.with_name(f"{data.name}.log"), time.monotonic()
    while "more to look at now" not in log.read_text():
        assert time.monotonic() - began < PATIENCE, [line for line in log.read_text().splitlines() if "request_id" not in line]
        assert server.process.poll() is None
        time.sleep(0.1)
    assert "the demo's" not in log.read_text()  # a part that failed is named so
    with closing(sqlite3.connect(data / "service.db")) as database:  # of what is unknown nothing can tell what became of it
        while (found := database.execute(OPEN_ISSUANCES).fetchall()) != [("outcome_unknown", "equal_keys")] * 2:
            assert time.monotonic() - began < PATIENCE, found
            time.sleep(0.1)
    return life_of(http)


def client(server: Running, key: str | None) -> httpx.Client:
    return httpx.Client(base_url=server.base_url, headers={"Authorization": f"Bearer {key}"}, timeout=60)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_first_start_of_a_demo_tells_the_same_story_each_time_and_another_start_adds_nothing_to_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running(data, LIVELY) as first, client(first, first.api_key) as http:
        key, life = first.api_key, wait_until_whole(http, first, data)
    assert life == snapshot(
        {
            "orders": [
                ("europe-3gb", "needs_review", "", 0),
                ("europe-3gb", "ready", "", 1),
                ("japan-3gb", "ready", "", 0),
                ("nordics-1gb", "failed", "succeeded", 0),
                ("nordics-1gb", "ready", "", 0),
                ("usa-3gb", "ready", "", 0),
                ("world-1gb", "pending_payment", "", 0),
            ],
            "products": [("Ferry crew 1 GB", {"amount": 690, "currency": "EUR"})],
            "intents": [
                ("Ferry crew 1 GB", "succeeded"),
                ("None", "requires_plan"),
                ("Test Europe 1 GB", "succeeded"),
                ("Test Global 1 GB", "succeeded"),
            ],
            "usage": [260.5, 290.0, 320.0],
            "invoices": [
                ("draft", "EUR", 7299, "Nordwind Reisen GmbH"),
                ("paid", "EUR", 5668, "Nordwind Reisen GmbH"),
                ("sent", "EUR", 6484, "Nordwind Reisen GmbH"),
            ],
            "charges": [
                (1490, "succeeded", False, 0, None),
                (1490, "succeeded", False, 0, None),
                (1490, "succeeded", False, 300, None),
                (1790, "succeeded", False, 0, None),
                (1990, "succeeded", True, 0, None),
                (2290, "failed", False, 0, "card_declined"),
                (5668, "succeeded", False, 0, None),
                (790, "succeeded", False, 0, None),
                (790, "succeeded", False, 790, None),
            ],
            "refunds": [(300, "succeeded"), (790, "succeeded")],
            "disputes": [(1990, "fraudulent")],
            "payouts": [(2500, "EUR")],
            "reviews": [(True, "rule")],
            "promotions": [("SPRING-15", 15.0)],
            "endpoints": ["500", "hooks"],
            "deliveries": [("500", "failed"), ("hooks", "delivered")],
            "approvals": [("waiting", "modify_subscriber_status", "The customer says that the phone was stolen")],
            "changes": [("set_status", "applied", 3, False), ("set_status", "applied", 3, True)],
            "schedules": [("fleet_health", "done")],
            "tags": [("late-payer", 3), ("travel", 6)],
            "keys": ["demo", "support agent"],
            "events": [
                "esim.issuance_failed",
                "esim.issuance_unknown",
                "esim.issued",
                "invoice.created",
                "invoice.paid",
                "invoice.sent",
                "order.created",
                "order.failed",
                "order.needs_review",
                "order.paid",
                "order.ready",
                "order.refunded",
                "order.top_up_ready",
                "payment.dispute_opened",
                "payment.refund_done",
                "usage.threshold_reached",
                "work.approval_requested",
                "work.change_set_done",
                "work.report_ready",
            ],
        }
    )
    with running(data, LIVELY) as again, client(again, key) as http:
        assert again.api_key is None
        assert life_of(http) == life


@pytest.mark.parametrize(
    "given",
    [
        {"SERVICE_DEMO": "false"},
        {"SERVICE_DEMO_LIFE": "false"},
        {"SERVICE_WORKER": "false"},
        {"SERVICE_SMTP_URL": "smtp://127.0.0.1:2525", "SERVICE_MAIL_FROM": "us@shop.example"},
        {"SERVICE_DATABASE_URL": "postgresql://127.0.0.1/demo", "SERVICE_WORKER": "true", "SERVICE_SECRET_KEYS": KEYS},
        {"SERVICE_OCS_URL": "http://127.0.0.1:8090/ocs-custo/main/v1", "SERVICE_OCS_TOKEN": "token-of-a-real-network"},
        {"SERVICE_PAYMENTS_KEY": "sk_test_12345678", "SERVICE_PAYMENTS_WEBHOOK_SECRET": "whsec_12345678"},
    ],
)
def test_there_is_no_life_where_there_is_no_demo_or_a_system_is_real_or_nothing_works_on_it(given: dict[str, str]) -> None:
    assert (load_settings({}).with_demo_life, load_settings(given).with_demo_life) == (True, False)
