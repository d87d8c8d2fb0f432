"""Before anything is timed: every contestant gives the same answers and writes the same rows."""

import json
import re
import sqlite3
from collections.abc import Sequence
from typing import Any

from benchmarks import requests
from benchmarks.contestant import Contestant, Seed
from benchmarks.load import Answer, run_ask
from benchmarks.names import OURS, PROXY
from benchmarks.rivals.fleet import RESELLER, iccid
from benchmarks.rivals.upstream import STRANGER

DRAWN = {
    "id": r"cni_[0-9a-hjkmnp-tv-z]{26}",
    "iccid": r"8999\d{15}",
    "activation_code": r"LPA:1\$smdp\.test\.invalid\$TEST(-[0-9A-HJKMNP-TV-Z]{4}){4}",
    "qr_code": r"LPA:1\$smdp\.test\.invalid\$TEST(-[0-9A-HJKMNP-TV-Z]{4}){4}",
    "matching_id": r"TEST(-[0-9A-HJKMNP-TV-Z]{4}){4}",
    "created": r"\d{10}",
}
TABLES = ("claim", "intent", "event", "audit", "delivery", "metered_line", "network_event", "confirm_token")


class Disagreement(SystemExit):
    """Contestants that do different work are not compared."""


def agree_on_http(contestants: Sequence[Contestant], seed: Seed) -> None:
    """GET and POST of an intent, a replay, a missing key, and the rows of one POST."""
    post = requests.create(seed.key)()
    seen = {one.name: behaviour(one, seed, post) for one in contestants}
    compare(seen)


def agree_on_mcp(contestants: Sequence[Contestant], seed: Seed, era: str) -> None:
    """tools/list has as many tools, tools/call the same structured result and text, and no key is refused."""
    seen: dict[str, Any] = {}
    for one in contestants:
        call = requests.tool_call(seed.key, era, seed.intents[:1])()
        result = mcp_result(run_ask(one.port, call))
        listed = mcp_result(run_ask(one.port, requests.tools_list(seed.key, era)))
        seen[one.name] = {
            "structured": result["structuredContent"],
            "text": json.loads(result["content"][0]["text"]),
            "error": result.get("isError", False),
            "tools": sorted(tool["name"] for tool in listed["tools"]),
            "no key": run_ask(one.port, call.replace(b"Bearer ak_", b"Bearer ax_")).status,
        }
    compare(seen)


def agree_on_upstream(contestants: Sequence[Contestant], seed: Seed, net: Contestant) -> None:
    """The same line without PINs, strangers not found, keys looked up, and the whole of the big answers."""
    seen = {one.name: gateway(one, seed) for one in contestants}
    bare = {one: found for one, found in seen.items() if one == PROXY}
    compare({one: found for one, found in seen.items() if one not in bare})
    compare({OURS: {"read": seen[OURS]["read"]}, **{one: {"read": found["read"]} for one, found in bare.items()}})
    answer = json.loads(run_ask(net.port, requests.ocs("getCustomerTariff", RESELLER)).body)
    ours = next(one for one in contestants if one.name == OURS)
    passed = json.loads(run_ask(ours.port, requests.once(seed.key, f"/v1/tariffs/{RESELLER}?verbose=true")).body)
    if passed != {"data": answer["listTariffRule"]["rule"]}:
        raise Disagreement("what was passed on is not what the charging system said")


def gateway(one: Contestant, seed: Seed) -> dict[str, Any]:
    """What a gateway answers."""
    own, strange = (requests.subscriber(seed.key, [iccid(number)])() for number in (0, STRANGER))
    read, none = run_ask(one.port, own), run_ask(one.port, own.replace(b"Bearer ak_", b"Bearer ax_"))
    listed = run_ask(one.port, requests.once(seed.key, "/v1/subscribers?limit=20"))
    rows = json.loads(listed.body)["data"] if listed.status == 200 else []
    return {
        "read": (read.status, json.loads(read.body)),
        "stranger": run_ask(one.port, strange).status,
        "no key": none.status,
        "rows": rows,
        "pins": b'"pin1"' in read.body + listed.body,
    }


def behaviour(one: Contestant, seed: Seed, post: bytes) -> dict[str, Any]:
    """What a contestant answers and writes."""
    before = rows(one)
    first = run_ask(one.port, post)
    after = rows(one)
    again = run_ask(one.port, post)
    wrong = run_ask(one.port, requests.read(seed.key, ["cni_00000000000000000000000000"])())
    read = run_ask(one.port, requests.read(seed.key, seed.intents[:1])())
    unknown = post.replace(b'"plan"', b'"plam"').replace(b"\r\nIdempotency-Key: ", b"\r\nIdempotency-Key: x")
    return {
        "read": (read.status, json.loads(read.body)),
        "created": (first.status, normal(json.loads(first.body))),
        "replayed": (again.status, json.loads(again.body) == json.loads(first.body)),
        "unknown intent": wrong.status,
        "unknown field": run_ask(one.port, unknown).status // 100,  # FastAPI says 422 where the others say 400
        "no key": run_ask(one.port, requests.without_key(f"/v1/connectivity/intents/{seed.intents[0]}")()).status,
        "rows": {table: after[table] - before[table] for table in after},
    }


def rows(one: Contestant) -> dict[str, int]:
    """Rows per table, and the calls charged."""
    database = sqlite3.connect(f"file:{one.data / 'service.db'}?mode=ro", uri=True)
    try:
        counted = {table: database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}
        return counted | {"quota": database.execute("SELECT coalesce(sum(used), 0) FROM quota").fetchone()[0]}
    finally:
        database.close()


def normal(value: Any, name: str = "") -> Any:
    """The value with everything that is drawn replaced by its form."""
    if isinstance(value, dict):
        return {key: normal(part, key) for key, part in value.items()}
    if name in DRAWN and re.fullmatch(DRAWN[name], str(value)):
        return DRAWN[name]
    return value


def mcp_result(answer: Answer) -> Any:
    """The result of an answer that is JSON or one server-sent event."""
    text = answer.body.decode()
    if b"text/event-stream" in answer.headers:
        text = next(line[6:] for line in text.splitlines() if line.startswith("data: {"))
    return json.loads(text)["result"]


def compare(seen: dict[str, Any]) -> None:
    """Stop at the first difference."""
    (first, expected), *others = seen.items()
    for name, found in others:
        for aspect, value in expected.items():
            if found[aspect] != value:
                raise Disagreement(f"{aspect}: {name} answers\n{found[aspect]}\nand {first}\n{value}")
