"""What the MCP rivals do in a tool call: the hand-written rival's GET, on its store."""

import json
import time
from pathlib import Path
from typing import Any

import orjson

from benchmarks.rivals.esim import new_id
from benchmarks.rivals.ledger import READ, Caller, Ledger
from benchmarks.rivals.routes import READ as GET


def read_intent(ledger: Ledger, caller: Caller, intent: str) -> dict[str, Any]:
    """One intent as a decoded answer."""
    started, request_id = time.monotonic(), new_id("req_")
    ledger.lease(caller)
    row = ledger.find(caller, intent)
    code, address, matching = ledger.profile(row)
    assert row.plan is not None
    ledger.record(caller, GET, request_id, started)
    ledger.log("POST", "/mcp", GET, 200, request_id, started)
    return {
        "id": row.id,
        "object": "connectivity.intent",
        "status": row.status,
        "livemode": bool(row.livemode),
        "plan": orjson.loads(row.plan),
        "esim": {"iccid": row.iccid, "activation_code": code, "qr_code": code, "smdp_address": address, "matching_id": matching},
        "metadata": orjson.loads(row.details),
        "error": None,
        "created": row.created,
    }


def listed_tools(data: Path) -> list[dict[str, Any]]:
    """The tools that the service itself lists, as the harness wrote them down: each rival registers as many, of the same size."""
    return json.loads((data / "tools.json").read_text())


def caller_of(ledger: Ledger, authorization: str | None) -> Caller:
    """The key check of every MCP request."""
    return ledger.caller(authorization, READ)
