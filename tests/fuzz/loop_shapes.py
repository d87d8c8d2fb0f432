"""Requests that cost the server as much time as their size allows: JSON, forms, queries and headers, by who sends them."""

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

SIZES = (2_000, 4_000, 15_000, 60_000, 250_000)
MCP_SIZES = (15_000, 60_000, 250_000, 1_000_000)
Shape = Callable[[int], str]


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
    """Whole requests, made when they are wanted, sent one after the other and again from the beginning."""

    name: str
    make: Callable[[], tuple[bytes, ...]]


def http(method: str, path: str, body: str | bytes = b"", **headers: str) -> bytes:
    sent = body.encode() if isinstance(body, str) else body
    given = {"host": "127.0.0.1", "content-type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
    if sent or method == "POST":
        given["content-length"] = str(len(sent))
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + sent


def in_sizes(name: str, path: str, shape: Shape, **headers: str) -> Attack:
    return Attack(name, lambda: tuple(http("POST", path, shape(size), **headers) for size in SIZES))


def every_shape(target: str, path: str, **headers: str) -> list[Attack]:
    return [in_sizes(f"{target}: {name}", path, shape, **headers) for name, shape in SHAPES.items()]


def asked(name: str, *paths: str, **headers: str) -> Attack:
    return Attack(name, lambda: tuple(http("GET", path, **headers) for path in paths))


FORM = "application/x-www-form-urlencoded"


def form(size: int) -> str:
    return repeated("", "k%=1", "", size).replace(",", "&")


def escapes(size: int) -> str:
    """A form of one field, all of it percent-encoded."""
    return "code=" + "%c3%a9" * (size // 6)


def anonymous() -> list[Attack]:
    """What somebody without a credential may send."""
    junk = SHAPES["unknown fields"]
    return [
        *every_shape("signup", "/v1/signup"),
        *every_shape("register", "/auth/register"),
        *every_shape("bridge webhook", "/v1/webhooks/bridge4ip"),
        in_sizes("verify: unknown fields", "/v1/signup/verify", junk),
        in_sizes("cancel: unknown fields", "/api/orders/ord_1/cancel", junk),
        in_sizes("payments webhook: a wrong signature", "/v1/operator-billing/payments-webhook", junk, stripe_signature="t=1,v1=00"),
        in_sizes("register: addresses", "/auth/register", lambda size: repeated('{"redirect_uris":[', '"x:%"', "]}", size)),
        in_sizes("register: addresses that are none", "/auth/register", lambda size: repeated('{"redirect_uris":[', "1", "]}", size)),
        in_sizes("token: many parameters", "/auth/token", form, content_type=FORM),
        in_sizes("token: one long parameter", "/auth/token", escapes, content_type=FORM),
        in_sizes("revoke: many parameters", "/auth/revoke", form, content_type=FORM),
        *[
            in_sizes(f"{path}: {name}", path, shape, content_type=FORM, origin="http://127.0.0.1")
            for path in ("/auth/sign-in", "/auth/sign-up", "/shop/x/checkout")
            for name, shape in (("many fields", form), ("escapes", escapes))
        ],
        *heads(),
        Attack("MCP without a credential", lambda: tuple(http("POST", "/mcp", junk(size)) for size in MCP_SIZES)),
    ]


def heads() -> list[Attack]:
    """What a request without a body may be."""
    many = {f"x-{number}": "1" for number in range(1500)}
    intents, dots = "/v1/connectivity/intents", "e" * 2_500
    return [
        asked("many query fields", *(f"{path}?{form(8_000)}" for path in ("/api/templates", "/auth/authorize", "/shop/x"))),
        asked("a query of escapes", *(path + "%41" * 2_600 for path in ("/api/templates?limit=", "/shop/x?country="))),
        asked("many headers", "/api/templates", **many),
        asked("cookies", "/auth/sign-in", cookie="; ".join(f"c{number}=1" for number in range(1_800))),
        asked("languages", "/shop/x", accept_language="en;q=0.1," * 1_500, accept="text/html"),
        asked("paths", "/" + "a/" * 4_000, "/docs/" + "%61" * 2_600, "/v1/" + "%2f" * 2_600),
        asked("a token of three dots", intents, authorization=f"Bearer {dots}.{dots}.{dots}"),
        asked("a token with a long signature", intents, authorization="Bearer eyJhbGciOiJSUzI1NiJ9.e30." + "e" * 7_000),
        asked("a key that is none", intents, authorization="Bearer ak_" + "A" * 46),
        asked("a credential in a long query", f"{intents}?token=x&{form(7_900)}"),
    ]


MCP_HEADERS = {"mcp_protocol_version": "2025-11-25", "accept": "application/json, text/event-stream"}
MCP_PARAMS: Mapping[str, str] = {
    "tools/call": '{"name":"get_connectivity_intent","_meta":%,"arguments":{}}',
    "initialize": '{"protocolVersion":"2025-11-25","clientInfo":{"name":"x","version":"1"},"capabilities":%}',
    "tools/list": '{"_meta":%}',
    "prompts/get": '{"name":"choose_plan","arguments":%}',
    "resources/read": '{"uri":"connectivity://plans","x":%}',
    "completion/complete": '{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":"b"},"context":{"arguments":%}}',
    "no/such": "%",
}
TOOLS = ("get_connectivity_intent", "create_connectivity_intent", "list_subscribers", "no_such_tool")
REPORTS = ("fleet-health", "churn-risk", "optimize-package", "detect-usage-anomalies", "audit-network-coverage", "marketing-intelligence")
LISTS = ("/v1/subscribers?limit=100", "/v1/connectivity/plans?limit=100", "/v1/package-templates", "/v1/audit-log?limit=100")


def organisation(key: str) -> list[Attack]:
    """What a free organisation may send."""
    bearer = {"authorization": f"Bearer {key}"}
    intents = "/v1/connectivity/intents"
    large = json.dumps({"metadata": {f"key-{number}": "é" * 150 for number in range(50)}})
    return [
        *every_shape("intent", intents, idempotency_key="k", **bearer),
        *every_shape("report", "/v1/intelligence/fleet-health", **bearer),
        *every_shape("onboarding", "/v1/onboarding/ocs-connect", **bearer),
        *over_mcp(bearer),
        asked("fields of a list", "/v1/subscribers?fields=" + "a," * 3_900, **bearer),
        asked("a cursor", f"{intents}?limit=100&starting_after=" + "a" * 7_900, **bearer),
        Attack("metadata as large as it may be", lambda: (http("POST", intents, large, **bearer),)),
        in_sizes("many spaces", intents, lambda size: "{" + " " * size + "}", **bearer),
        *[in_sizes(f"a report: {path}", f"/v1/intelligence/{path}", lambda _: "{}", **bearer) for path in REPORTS],
        *[asked(f"a list: {path}", path, **bearer) for path in LISTS],
    ]


def over_mcp(bearer: Mapping[str, str]) -> list[Attack]:
    """The same over MCP, and what only MCP has."""

    def sent(name: str, method: str, params: Shape, path: str = "/mcp") -> Attack:
        text = f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":'
        return Attack(name, lambda: tuple(http("POST", path, text + params(size) + "}", **bearer, **MCP_HEADERS) for size in MCP_SIZES))

    def of_tool(tool: str, shape: Shape) -> Shape:
        return lambda size: f'{{"name":"{tool}","arguments":{shape(size)}}}'

    def filled(params: str) -> Shape:
        return lambda size: params.replace("%", SHAPES["unknown fields"](size))

    toolsets = ",".join(f"t{number}" for number in range(1_000))
    return [
        *[sent(f"{tool} over MCP: {name}", "tools/call", of_tool(tool, shape)) for tool in TOOLS for name, shape in SHAPES.items()],
        *[sent(f"MCP {method}: unknown fields", method, filled(params)) for method, params in MCP_PARAMS.items()],
        sent("MCP resources/read: a long address", "resources/read", lambda size: json.dumps({"uri": "connectivity://" + "a" * size})),
        sent("MCP tools/list", "tools/list", lambda _: "{}"),
        sent("MCP toolsets", "tools/list", lambda _: "{}", f"/mcp?toolsets={toolsets}"),
        Attack(
            "MCP a batch", lambda: tuple(http("POST", "/mcp", repeated("[", "1", "]", size), **bearer, **MCP_HEADERS) for size in MCP_SIZES)
        ),
    ]
