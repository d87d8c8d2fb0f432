"""The Markdown pages."""

from inline_snapshot import snapshot

from tests.openapi.lamps import LAMPS
from transports.openapi.document import IDEMPOTENCY_KEY_TEXT
from transports.reference.files import markdown_reference


def section(id: str) -> str:
    page = markdown_reference(LAMPS)["lamps.md"]
    start = page.index(f"\n## {id}\n")
    end = page.find("\n## ", start + 1)
    return page[start:end].strip()


def test_the_index_lists_toolsets_operations_and_the_errors_of_all() -> None:
    assert markdown_reference(LAMPS)["README.md"] == snapshot("""\
<!-- Written by `reseller reference`; a test fails when it differs from the catalogue. -->
# API reference

Base address: `http://127.0.0.1:8000`. MCP: `http://127.0.0.1:8000/mcp`.

## [lamps](lamps.md)

Light.

| Operation | HTTP | What it does |
|---|---|---|
| [`about_lamps`](lamps.md#about_lamps) | `GET /v1/about` | Tell about lamps. |
| [`list_lamps`](lamps.md#list_lamps) | `GET /v1/lamps` | List lamps \\| newest first. |
| [`create_lamp`](lamps.md#create_lamp) | `POST /v1/lamps` | Order a lamp. |
| [`remove_lamp`](lamps.md#remove_lamp) | `DELETE /v1/lamps/{id}` | Remove a lamp. |
| [`blink_lamp`](lamps.md#blink_lamp) | `POST /v1/lamps/{id}/blink` | Make a lamp blink. |
| [`get_lamp_card`](lamps.md#get_lamp_card) | `GET /v1/lamps/{id}/card` | Show a lamp, or its card. |
| [`dim_lamp`](lamps.md#dim_lamp) | `POST /v1/lamps/{id}/dim` | Dim a lamp. |
| [`get_lamp_picture`](lamps.md#get_lamp_picture) | `GET /v1/lamps/{id}/picture.{format}` | Draw a lamp. |

## Errors of every operation

| Status | Code | When |
|---|---|---|
| 403 | `origin_not_allowed` | A browser page of another origin called; never used for scopes, which answer 402. |
| 403 | `credential_restricted` | The credential may do less than its maker: a restricted key, or a login that was granted less. |
| 414 | `uri_too_long` | The request target is longer than 8 KiB. |
| 421 | `misdirected_request` | The Host header names a host this server does not serve. |
| 431 | `headers_too_large` | More header bytes than the server takes. |
| 500 | `internal` | A fault of ours; the request id is all the caller gets. |
| 503 | `store_unavailable` | The database is busy, full or gone; nothing was done, unless the error says that this is not known. |
""")


def test_an_operation_is_told_whole() -> None:
    assert section("create_lamp").replace(IDEMPOTENCY_KEY_TEXT, "(what a key is)") == snapshot("""\
## create_lamp

**Create lamp**: `POST /v1/lamps`

Order a lamp.

It comes **unlit**. See <b>list_lamps</b>.

- Credential: An API key, or the session token of a signed-in person.
- Access: Write: the tiers pro and enterprise.
- Repeating: `X-Idempotency-Key` is required; the answer of a key is kept for good and given again.
- Quota: One call of the daily quota.

### Input

| Field | In | Type | Meaning |
|---|---|---|---|
| `X-Idempotency-Key` (required) | header | string, 1-255 characters | (what a key is) `Idempotency-Key` is taken too. |
| `watts` (required) | body | number, more than 0, at most 100 | Power in watts, more than 0, at most 100. |
| `note` | body | string, at most 40 characters or null | For you, at most 40 characters. |

### It's a lamp

```sh
curl -X POST http://127.0.0.1:8000/v1/lamps \\
  -H 'Authorization: Bearer <API_KEY>' \\
  -H 'X-Idempotency-Key: <UNIQUE_KEY>' \\
  -H 'Content-Type: application/json' \\
  -d '{"watts":7.5}'
```

The same over MCP:

```json
{
  "jsonrpc": "2.0",
  "id": 1,
  "method": "tools/call",
  "params": {
    "name": "create_lamp",
    "arguments": {
      "watts": 7.5,
      "idempotency_key": "<UNIQUE_KEY>"
    }
  }
}
```

Answer:

```json
{
  "id": "lmp_a",
  "watts": 7.5,
  "colour": null
}
```

### Answer 201

| Field | Type | Meaning |
|---|---|---|
| `id` | string |  |
| `watts` | number |  |
| `colour` | one of red, green or null |  |

### Errors

| Status | Code | When |
|---|---|---|
| 400 | `invalid_request` | A field breaks its rule; `param` names it, `error` tells the rule. |
| 400 | `unknown_field` | The input has a field that this operation does not know. |
| 400 | `invalid_json` | The body is not one JSON object. |
| 400 | `idempotency_key_required` | The key header is missing. |
| 401 | `unauthorized` | No credential, or one that is not accepted here. |
| 402 | `upgrade_required` | The tier of your organisation, or your role in it, does not carry the scope. |
| 408 | `request_timeout` | The client took too long to send its request. |
| 409 | `organization_required` | You belong to no organisation, and this acts for one. |
| 409 | `idempotency_key_reused` | The key was used before, with other input. |
| 409 | `idempotency_key_expired` | The key was used long ago and its answer is not kept any more; nothing was done now. |
| 409 | `idempotency_in_progress` | An earlier call with the key is still running. |
| 409 | `colour_taken` | The colour is taken. |
| 413 | `body_too_large` | More bytes than the operation takes. |
| 415 | `unsupported_media_type` | The body is not plain, uncompressed JSON. |
| 429 | `rate_limited` | Too many calls at once; `Retry-After` says when to repeat. |
| 429 | `quota_exceeded` | The calls of this UTC day are used up. |\
""")


def test_a_query_stands_in_the_address_of_the_example() -> None:
    assert "curl 'http://127.0.0.1:8000/v1/lamps?colour=red&rooms=hall,attic' \\" in section("list_lamps")


def test_an_operation_without_an_example_is_shown_with_placeholders() -> None:
    assert "curl -X DELETE 'http://127.0.0.1:8000/v1/lamps/<id>' \\" in section("remove_lamp")


def test_what_is_no_tool_is_not_shown_as_one() -> None:
    assert "MCP" not in section("get_lamp_picture")
    assert "Image/svg+xml or image/png." in section("get_lamp_picture")


def test_an_answer_that_can_be_a_document_too_says_so() -> None:
    assert "- Answer: JSON, or `text/html` or `text/plain` where it is asked for." in section("get_lamp_card")


def test_who_may_call_is_said() -> None:
    assert "- Access: Admin: the tier enterprise and the role admin." in section("remove_lamp")
    assert "- Credential: The deployment's internal key." in section("blink_lamp")
    assert "- Credential: None: it is public." in section("about_lamps")


def test_a_bar_does_not_end_a_table_cell() -> None:
    assert "| List lamps \\| newest first. |" in markdown_reference(LAMPS)["README.md"]
