"""Requests that cost the server as much time as their size allows: JSON, forms, queries and headers, by who sends them."""

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

SIZES = (2_000, 4_000, 15_000, 60_000, 250_000)
MCP_SIZES = (15_000, 60_000, 250_000, 1_000_000)
Shape = Callable[[int], str]
TOKEN = "e" * 20


def repeated(begin: str, each: str, end: str, size: int) -> str:
    """As many of `each`, in which a % becomes a number, as fit."""
    parts: list[str] = []
    left = size - len(begin) - len(end)
    while left > 0:
        parts.append(each.replace("%", str(len(parts))))
        left -= len(parts[-1]) + 1
    return begin + ",".join(parts) + end


SHAPES: Mapping[str, Shape] = {
    "unknown fields": lambda size: repeated("{", '"k%":1', "}", size),
    "unknown fields, fractions": lambda size: repeated("{", '"k%":1.5', "}", size),
    "a list for a text": lambda size: repeated('{"email":[', "0", '],"plan":[1]}', size),
    "an object for a text": lambda size: repeated('{"email":{', '"k%":1', '},"code":{}}', size),
    "numbers in metadata": lambda size: repeated('{"metadata":{', '"k%":1', "}}", size),
    "empty arrays": lambda size: repeated('{"email":[', "[]", "]}", size),
    "empty objects": lambda size: repeated('{"events":[', "{}", "]}", size),
    "brackets thirty deep": lambda size: repeated('{"email":[', "[" * 29 + "]" * 29, "]}", size),
    "brackets without end": lambda size: "[" * size,
    "texts of a quote": lambda size: repeated('{"email":[', r'"\""', "]}", size),
    "one name many times": lambda size: repeated("{", '"email":1', "}", size),
    "escapes": lambda size: '{"email":"' + r"\u00e9" * (size // 6) + '"}',
    "long integers": lambda size: repeated('{"email":[', "1234567890123456789", "]}", size),
    "no JSON at the end": lambda size: repeated("{", '"k%":1', ",", size),
    "a long text": lambda size: '{"email":"' + "a." * (size // 2) + '@b.test","organization_name":"x"}',
}


class Attack(NamedTuple):
    """Whole requests, sent one after the other and again from the beginning."""

    name: str
    requests: tuple[bytes, ...]


def http(method: str, path: str, body: str | bytes = b"", **headers: str) -> bytes:
    """One request."""
    sent = body.encode() if isinstance(body, str) else body
    given = {"host": "127.0.0.1", "content-type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
    if sent or method == "POST":
        given["content-length"] = str(len(sent))
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + sent


def every_shape(target: str, method: str, path: str, **headers: str) -> list[Attack]:
    """All shapes at one address, each in every size."""
    return [in_sizes(f"{target}: {name}", method, path, shape, **headers) for name, shape in SHAPES.items()]


def in_sizes(name: str, method: str, path: str, shape: Shape, **headers: str) -> Attack:
    """One shape in each size."""
    return Attack(name, tuple(http(method, path, shape(size), **headers) for size in SIZES))


FORM = "application/x-www-form-urlencoded"


def form(size: int) -> str:
    """A form of many fields."""
    return repeated("", "k%=1", "", size).replace(",", "&")


def escapes(size: int) -> str:
    """A form of one field, all of it percent-encoded."""
    return "code=" + "%c3%a9" * (size // 6)


def anonymous() -> list[Attack]:
    """What somebody without a credential may send."""
    junk = SHAPES["unknown fields"]
    return [
        *every_shape("signup", "POST", "/v1/signup"),
        *every_shape("register", "POST", "/auth/register"),
        *every_shape("bridge webhook", "POST", "/v1/webhooks/bridge4ip"),
        in_sizes("verify: unknown fields", "POST", "/v1/signup/verify", junk),
        in_sizes("cancel: unknown fields", "POST", "/api/orders/ord_1/cancel", junk),
        in_sizes(
            "payments webhook: a wrong signature", "POST", "/v1/operator-billing/payments-webhook", junk, stripe_signature="t=1,v1=00"
        ),
        in_sizes("token: many parameters", "POST", "/auth/token", form, content_type=FORM),
        in_sizes("token: one long parameter", "POST", "/auth/token", escapes, content_type=FORM),
        in_sizes("revoke: many parameters", "POST", "/auth/revoke", form, content_type=FORM),
        *[
            in_sizes(f"{path}: {name}", "POST", path, shape, content_type=FORM, origin="http://127.0.0.1")
            for path in ("/auth/sign-in", "/auth/sign-up", "/shop/x/checkout")
            for name, shape in (("many fields", form), ("escapes", escapes))
        ],
        *heads(),
        Attack("MCP without a credential", tuple(http("POST", "/mcp", junk(size)) for size in MCP_SIZES)),
    ]


def heads() -> list[Attack]:
    """What a request without a body may be."""
    many = {f"x-{number}": "1" for number in range(1500)}
    intents, dots = "/v1/connectivity/intents", "e" * 2_500
    return [
        Attack(
            "many query fields", tuple(http("GET", f"{path}?{form(8_000)}") for path in ("/api/templates", "/auth/authorize", "/shop/x"))
        ),
        Attack("a query of escapes", tuple(http("GET", path + "%41" * 2_600) for path in ("/api/templates?limit=", "/shop/x?country="))),
        Attack("many headers", (http("GET", "/api/templates", **many),)),
        Attack("cookies", (http("GET", "/auth/sign-in", cookie="; ".join(f"c{number}=1" for number in range(1_800))),)),
        Attack("languages", (http("GET", "/shop/x", accept_language="en;q=0.1," * 1_500, accept="text/html"),)),
        Attack("paths", (http("GET", "/" + "a/" * 4_000), http("GET", "/docs/" + "%61" * 2_600), http("GET", "/v1/" + "%2f" * 2_600))),
        Attack(
            "credentials that are none",
            (
                http("GET", intents, authorization=f"Bearer {dots}.{dots}.{dots}"),
                http("GET", intents, authorization="Bearer eyJhbGciOiJSUzI1NiJ9.e30." + "e" * 7_000),
                http("GET", intents, authorization="Bearer ak_" + "A" * 46),
                http("GET", f"{intents}?token=x&{form(7_900)}"),
            ),
        ),
    ]


REPORTS = ("fleet-health", "churn-risk", "optimize-package", "detect-usage-anomalies", "audit-network-coverage", "marketing-intelligence")
LISTS = ("/v1/subscribers?limit=100", "/v1/connectivity/plans?limit=100", "/v1/package-templates", "/v1/audit-log?limit=100")
MODERN = {"mcp_protocol_version": "2025-11-25", "accept": "application/json, text/event-stream"}


def message(method: str, params: str) -> str:
    """One MCP message."""
    return f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}'


def mcp(key: str, method: str, params: str) -> bytes:
    """One MCP request."""
    return http("POST", "/mcp", message(method, params), authorization=f"Bearer {key}", **MODERN)


def organisation(key: str) -> list[Attack]:
    """What a free organisation may send."""
    bearer = {"authorization": f"Bearer {key}"}
    tools = ("get_connectivity_intent", "create_connectivity_intent", "list_subscribers", "no_such_tool")
    junk = SHAPES["unknown fields"]
    attacks = [
        *every_shape("intent", "POST", "/v1/connectivity/intents", idempotency_key="k", **bearer),
        *every_shape("report", "POST", "/v1/intelligence/fleet-health", **bearer),
        *every_shape("onboarding", "POST", "/v1/onboarding/ocs-connect", **bearer),
    ]
    for tool in tools:
        for name, shape in SHAPES.items():
            calls = tuple(mcp(key, "tools/call", f'{{"name":"{tool}","arguments":{shape(size)}}}') for size in MCP_SIZES)
            attacks.append(Attack(f"{tool} over MCP: {name}", calls))
    for method, params in {
        "tools/call": '{"name":"get_connectivity_intent","_meta":%,"arguments":{}}',
        "initialize": '{"protocolVersion":"2025-11-25","clientInfo":{"name":"x","version":"1"},"capabilities":%}',
        "tools/list": '{"_meta":%}',
        "prompts/get": '{"name":"choose_plan","arguments":%}',
        "resources/read": '{"uri":"connectivity://plans","x":%}',
        "completion/complete": '{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":"b"},"context":{"arguments":%}}',
        "no/such": "%",
    }.items():
        attacks.append(Attack(f"MCP {method}: unknown fields", tuple(mcp(key, method, params.replace("%", junk(s))) for s in MCP_SIZES)))
    long = tuple(mcp(key, "resources/read", json.dumps({"uri": "connectivity://" + "a" * s})) for s in MCP_SIZES)
    attacks += [
        Attack("MCP resources/read: a long address", long),
        Attack("MCP tools/list", (mcp(key, "tools/list", "{}"),)),
        Attack("MCP a batch", tuple(http("POST", "/mcp", "[" + ",".join(["1"] * (s // 2)) + "]", **bearer, **MODERN) for s in MCP_SIZES)),
        Attack(
            "MCP toolsets",
            (http("POST", "/mcp?toolsets=" + ",".join(f"t{n}" for n in range(1_000)), message("tools/list", "{}"), **bearer, **MODERN),),
        ),
        Attack("fields of a list", (http("GET", "/v1/subscribers?fields=" + "a," * 3_900, **bearer),)),
        Attack("a cursor", (http("GET", "/v1/connectivity/intents?limit=100&starting_after=" + "a" * 7_900, **bearer),)),
        Attack(
            "metadata as large as it may be",
            (
                http(
                    "POST",
                    "/v1/connectivity/intents",
                    json.dumps({"metadata": {f"key-{number}": "é" * 150 for number in range(50)}}),
                    **bearer,
                ),
            ),
        ),
        Attack("many spaces in a body", (http("POST", "/v1/connectivity/intents", "{" + " " * 250_000 + "}", **bearer),)),
    ]
    attacks += [Attack(f"a report: {path}", (http("POST", f"/v1/intelligence/{path}", "{}", **bearer),)) for path in REPORTS]
    attacks += [Attack(f"a list: {path}", (http("GET", path, **bearer),)) for path in LISTS]
    return attacks
