"""What the reference says about each operation, whatever it is rendered as: its fields, its errors, and example calls to paste."""

import inspect
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import quote, urlencode

import orjson

from operations.event_types.declaration import AnyEventType
from registry.catalogue import AnyOperation, Catalogue, Toolset
from registry.free_text import has_free_text
from registry.operation import Auth, Example, Scope, SpendKind
from registry.ports import Site
from registry.versions import Versioned
from transports.openapi.document import build_openapi, document_media_types, is_document_answer, path_fields
from transports.openapi.event_schemas import described_event_types, event_example, event_readers, event_receivers, event_title
from transports.openapi.refusals import FAULT_RULES, OperationFault, has_json_body, operation_faults
from transports.openapi.schemas import OpenapiJson, resolve_schema

_CREDENTIAL_PLACEHOLDERS: Mapping[Auth, str] = {
    Auth.BEARER: "<API_KEY>",
    Auth.SESSION: "<SESSION_TOKEN>",
    Auth.INTERNAL: "<INTERNAL_API_KEY>",
    Auth.STOREFRONT: "<STOREFRONT_API_KEY>",
    Auth.STOREFRONT_OPEN: "<STOREFRONT_API_KEY>",
    Auth.BRIDGE: "<INTERNAL_API_KEY>",
}
_KEY_PLACEHOLDER = "<UNIQUE_KEY>"
_PLAIN_ARRAY = re.compile(r"\[\n +[^\[\]{}\n,]*(,\n +[^\[\]{}\n,]*)*\n *\]")
_WAITS_OR_RAISES = re.compile(r" (?=Waits for the network\.|Raises [A-Z])")
"""What a docstring tells whoever reads the code."""
_LINE_BREAK = re.compile(r"\n *")


def pretty_json(value: object) -> str:
    """JSON for people; an array of plain values stays on one line."""
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    return _PLAIN_ARRAY.sub(lambda found: _LINE_BREAK.sub("", found.group()).replace(",", ", "), text)


def curl_example(operation: AnyOperation, values: Mapping[str, object], base_url: str) -> str:
    named = path_fields(operation)
    path = operation.path
    for name in named:
        path = path.replace("{" + name + "}", quote(_query_word(values.get(name, f"<{name}>")), safe="<>"))
    rest = {name: value for name, value in values.items() if name not in named}
    if rest and not has_json_body(operation):
        path += "?" + urlencode({name: _query_word(value) for name, value in rest.items()}, safe=",:")
        rest = {}
    method = "" if operation.method == "GET" else f"-X {operation.method} "
    parts = [f"curl {method}{shlex.quote(base_url + path)}"]
    parts += [f"-H {_shell_quoted(header)}" for header in _curl_headers(operation, bool(rest))]
    if rest:
        parts.append(f"-d {_shell_quoted(orjson.dumps(rest).decode())}")
    return " \\\n  ".join(parts)


def _shell_quoted(value: str) -> str:
    return "'" + value.replace("'", "'\\''") + "'"


def _query_word(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(_query_word(one) for one in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # JSON
    return str(value).lower() if isinstance(value, bool) else str(value)


def _curl_headers(operation: AnyOperation, body: bool) -> list[str]:
    credential = _CREDENTIAL_PLACEHOLDERS.get(operation.auth)
    found = [] if credential is None else [f"Authorization: Bearer {credential}"]
    if operation.once is not None and operation.once.required:
        found.append(f"{operation.once.header}: {_KEY_PLACEHOLDER}")
    if body:
        found.append("Content-Type: application/json")
    return found


def tool_call_example(operation: AnyOperation, values: Mapping[str, object]) -> str | None:
    """The call over MCP, or None when it is not a tool."""
    if not operation.tool:
        return None
    arguments = dict(values)
    if operation.once is not None and operation.once.required:
        arguments["idempotency_key"] = _KEY_PLACEHOLDER
    return pretty_json({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": operation.id, "arguments": arguments}})


_DEEPEST_FIELD = 4


@dataclass(frozen=True, slots=True)
class FieldRow:
    """One field. `place` is path, query, header, body or empty for an answer."""

    name: str
    place: str
    kind: str
    required: bool
    text: str


def field_rows(model: OpenapiJson, schemas: dict[str, OpenapiJson], place: str, prefix: str = "", depth: int = 0) -> Iterator[FieldRow]:
    model = resolve_schema(model, schemas)
    required = model.get("required", [])
    for name, field in model.get("properties", {}).items():
        yield FieldRow(prefix + name, place, field_kind(field, schemas), name in required, _field_text(field, schemas))
        inner, mark = _inner_object(field, schemas)
        if inner is not None and depth < _DEEPEST_FIELD:
            yield from field_rows(inner, schemas, place, f"{prefix}{name}{mark}.", depth + 1)


def _field_text(field: OpenapiJson, schemas: dict[str, OpenapiJson]) -> str:
    sources = (field, resolve_schema(field, schemas), *_field_choices(field, schemas))
    meaning = next((meant for one in sources if (meant := str(one.get("description", "")).partition("\n")[0])), "")
    if field.get("deprecated"):
        meaning = f"Deprecated. {meaning}".strip()
    default: object = field.get("default")
    if has_free_text(field):
        meaning = f"{meaning}{'; free' if meaning else 'Free'} text"
    if default is None or default in ({}, []):
        return meaning
    shown = str(default).lower() if isinstance(default, bool) else str(default)
    return f"{meaning} Default: {shown}.".strip()


def _field_choices(field: OpenapiJson, schemas: dict[str, OpenapiJson]) -> list[OpenapiJson]:
    field = resolve_schema(field, schemas)
    kinds: list[OpenapiJson] = [resolve_schema(one, schemas) for one in field.get("anyOf", field.get("oneOf", [field]))]
    return [one for one in kinds if one.get("type") != "null"]


def _inner_object(field: OpenapiJson, schemas: dict[str, OpenapiJson]) -> tuple[OpenapiJson | None, str]:
    """The object that a field holds, alone or in an array, when it holds just one kind of it."""
    kinds = _field_choices(field, schemas)
    if len(kinds) != 1:
        return None, ""
    found, mark = kinds[0], ""
    while found.get("type") == "array" and "items" in found:
        found, mark = resolve_schema(found["items"], schemas), mark + "[]"
    return (found, mark) if "properties" in found else (None, "")


def field_kind(field: OpenapiJson, schemas: dict[str, OpenapiJson]) -> str:
    """The type and the range in words."""
    resolved = resolve_schema(field, schemas)
    if "$ref" in field and f"'{field['$ref']}'" in str(resolved):  # what holds itself is JSON that the other side decides upon
        return "any JSON"
    shown = " or ".join(dict.fromkeys(_one_kind(one, schemas) for one in _field_choices(field, schemas)))
    nullable = any(one.get("type") == "null" for one in resolved.get("anyOf", []))
    return f"{shown or 'null'} or null" if nullable and shown else shown or "null"


def _one_kind(found: OpenapiJson, schemas: dict[str, OpenapiJson]) -> str:
    if "const" in found:
        return f"always {_spell_constant(found['const'])}"
    if "enum" in found:
        return "one of " + ", ".join(_spell_constant(value) for value in found["enum"])
    name: str = found.get("type", "any value")
    if name == "array":
        return "array of " + field_kind(found.get("items", {}), schemas) + _range_text(found, "minItems", "maxItems", " entries")
    if name == "object" and "properties" not in found:
        return "object, free keys" + _range_text(found, "minProperties", "maxProperties", " entries")
    if name == "string":
        form = f", {found['format']}" if "format" in found else ""
        return "string" + form + _range_text(found, "minLength", "maxLength", " characters")
    return name + _exclusive_range_text(found) + _range_text(found, "minimum", "maximum", "")


def _spell_constant(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _range_text(found: OpenapiJson, low: str, high: str, unit: str) -> str:
    least, most = found.get(low), found.get(high)
    if least is not None and most is not None:
        return f", {least}{unit}" if least == most else f", {least}-{most}{unit}"
    if least is not None:
        return f", at least {least}{unit}"
    return "" if most is None else f", at most {most}{unit}"


def _exclusive_range_text(found: OpenapiJson) -> str:
    more = f", more than {found['exclusiveMinimum']}" if "exclusiveMinimum" in found else ""
    return more + (f", less than {found['exclusiveMaximum']}" if "exclusiveMaximum" in found else "")


_CREDENTIAL_TEXTS: Mapping[Auth, str] = {
    Auth.BEARER: "An API key, or the session token of a signed-in person.",
    Auth.SESSION: "The session token of a signed-in person; API keys are refused.",
    Auth.INTERNAL: "The deployment's internal key.",
    Auth.STOREFRONT: "The deployment's storefront key.",
    Auth.STOREFRONT_OPEN: "The deployment's storefront key, when one is set.",
    Auth.PUBLIC: "None: it is public.",
    Auth.SIGNATURE: "The sender's signature over the body.",
    Auth.BRIDGE: "The sender's signature over the body, or the deployment's internal key.",
}


@dataclass(frozen=True, slots=True)
class ReferenceExample:
    """One call and its answer, ready to paste."""

    title: str
    curl: str
    tool_call: str | None
    answer: str | None


@dataclass(frozen=True, slots=True)
class ReferenceEntry:
    operation: AnyOperation
    details: str
    notes: tuple[tuple[str, str], ...]
    inputs: tuple[FieldRow, ...]
    answer_kind: str
    answer: tuple[FieldRow, ...]
    examples: tuple[ReferenceExample, ...]
    faults: tuple[OperationFault, ...]


@dataclass(frozen=True, slots=True)
class ReferenceChapter:
    toolset: Toolset
    entries: tuple[ReferenceEntry, ...]


@dataclass(frozen=True, slots=True)
class EventEntry:
    """A type of events. `details` is about the members of `data`; `example` is a whole event."""

    event_type: AnyEventType
    details: str
    notes: tuple[tuple[str, str], ...]
    members: tuple[FieldRow, ...]
    example: str


@dataclass(frozen=True, slots=True)
class Reference:
    """The whole reference. `faults` are those that every operation can answer with; `envelope` are the members of every event."""

    site: Site
    chapters: tuple[ReferenceChapter, ...]
    events: tuple[EventEntry, ...]
    envelope: tuple[FieldRow, ...]
    faults: tuple[OperationFault, ...]

    def chapter(self, name: str) -> ReferenceChapter | None:
        return next((chapter for chapter in self.chapters if chapter.toolset.name == name), None)


def build_reference(catalogue: Catalogue, site: Site) -> Reference:
    """Read the catalogue through its OpenAPI document, so that the two cannot differ."""
    document = build_openapi(catalogue, site)
    chapters = [
        ReferenceChapter(toolset, tuple(_reference_entry(operation, document, site) for operation in found))
        for toolset in catalogue.toolsets
        if (found := toolset.operations())
    ]
    schemas: dict[str, OpenapiJson] = document["components"].get("schemas", {})
    events = tuple(_event_entry(each, schemas) for each in described_event_types(catalogue))
    faults = tuple(fault for _, fault in FAULT_RULES if fault.everywhere)
    return Reference(site, tuple(chapters), events, tuple(_envelope_rows(events, schemas)), faults)


def _event_entry(event_type: AnyEventType, schemas: dict[str, OpenapiJson]) -> EventEntry:
    data = resolve_schema(schemas[event_title(event_type)]["properties"]["data"], schemas)
    notes = (
        ("Since", f"{event_type.since}, version {event_type.version}."),
        ("Who sees it", event_readers(event_type)),
        ("Where it goes", event_receivers(event_type)),
    )
    details: str = data.get("description", "")
    return EventEntry(event_type, details, notes, tuple(field_rows(data, schemas, "")), pretty_json(event_example(event_type)))


def _envelope_rows(events: tuple[EventEntry, ...], schemas: dict[str, OpenapiJson]) -> list[FieldRow]:
    """The members that stand beside `type` and `data`: each as the first type has it."""
    members: OpenapiJson = {}
    required: set[str] = set()
    for each in events:
        schema = schemas[event_title(each.event_type)]
        members, required = schema["properties"] | members, required | set(schema["required"])
    shown = {name: member for name, member in members.items() if name not in ("type", "data")}
    return list(field_rows({"properties": shown, "required": sorted(required)}, schemas, ""))


def _reference_entry(operation: AnyOperation, document: OpenapiJson, site: Site) -> ReferenceEntry:
    described: OpenapiJson = document["paths"][operation.path][operation.method.lower()]
    schemas: dict[str, OpenapiJson] = document["components"].get("schemas", {})
    kind_of_answer, answer = _answer_rows(operation, described, schemas)
    return ReferenceEntry(
        operation=operation,
        details=operation.description.partition("\n")[2].strip(),
        notes=tuple(_entry_notes(operation)),
        inputs=tuple(_input_rows(described, document["components"], schemas)),
        answer_kind=kind_of_answer,
        answer=answer,
        examples=tuple(
            _reference_example(operation, example, site)
            for example in operation.examples or (Example("Call it", {name: f"<{name}>" for name in path_fields(operation)}),)
        ),
        faults=tuple(fault for fault in operation_faults(operation) if not fault.everywhere),
    )


def _entry_notes(operation: AnyOperation) -> list[tuple[str, str]]:
    """What the schema of `operation` does not say, as pairs of a heading and a text."""
    found = [("Credential", _CREDENTIAL_TEXTS[operation.auth])]
    if operation.auth in (Auth.BEARER, Auth.SESSION):
        found.append(("Access", _access_text(operation)))
    once = operation.once
    if once is not None:
        kept = "for good" if once.forever else "for 30 days"
        need = "required" if once.required else "optional"
        found.append(("Repeating", f"`{once.header}` is {need}; the answer of a key is kept {kept} and given again."))
    if operation.confirm:
        found.append(("Confirmation", "The first call answers 202 with a token; the same call with `X-Confirm-Token` executes it."))
    if operation.replaces is not None:
        text = (
            f"A call that would replace {operation.replaces} needs the role admin, and answers 202 with a token first; the same call with "
        )
        found.append(("Confirmation", text + "`X-Confirm-Token` executes it. All other calls are made at once."))
    if operation.confirms_some:
        found.append(("Confirmation", "Some calls answer 202 with a token first; the same call with `X-Confirm-Token` executes it."))
    if operation.approvable:
        found.append(("Approval", "Answers 202 where the credential is held to wait for a person, who approves it at /auth/approvals."))
    if operation.versioned is not None:
        found.append(("Version", _version_text(operation.versioned, reads=operation.read_only)))
    if operation.upstream:
        found.append(("Upstream", "Reaches the charging system: your organisation must be connected."))
    if operation.processor:
        found.append(("Payments", "Reaches the payment processor, in your organisation's own account there."))
    if operation.spends is not None:
        found.append(("Limits", _limits_text(operation)))
    if operation.forms:
        found.append(("Answer", f"JSON, or {' or '.join(f'`{name}`' for name in operation.forms)} where it is asked for."))
    found.append(("Quota", "One call of the daily quota." if operation.charged else "Not charged."))
    return found


def _version_text(versioned: Versioned, *, reads: bool) -> str:
    """How a caller sees to it that it overwrites nothing that it has not read. Over HTTP alone: a tool's call has no such header."""
    if reads:
        takers = " and ".join(f"`{each}`" for each in versioned.changed_by)
        return f"Over HTTP `ETag` is the version of the {versioned.what}; {takers} takes it as `If-Match`."
    text = (
        f"Over HTTP `If-Match` takes the `ETag` of `{versioned.reader}` or of an answer of this: another version is 412, and who changed "
    )
    return text + f"the {versioned.what} and when is told."


def _limits_text(operation: AnyOperation) -> str:
    """What the limits of a key count of `operation`, in sentences."""
    spends = operation.spends
    if spends is SpendKind.NOTHING:
        text = "Makes no money due."
    elif isinstance(spends, SpendKind):
        text = "Nobody can say before what it makes due: a key with a limit of money needs an approval."
    else:
        text = "Makes due: " + _WAITS_OR_RAISES.split((inspect.getdoc(spends) or "").partition("\n")[0])[0]
    drawn = " May take a line from the stock." if operation.draws else ""
    return text + drawn + (" Cannot be undone." if operation.irreversible else "")


def _access_text(operation: AnyOperation) -> str:
    if operation.scope & Scope.ADMIN:
        return "Admin: the tier enterprise and the role admin."
    if operation.scope & Scope.WRITE:
        return "Write: the tiers pro and enterprise."
    return "Read: every tier." if operation.read_only else "Every tier."


def _input_rows(described: OpenapiJson, components: OpenapiJson, schemas: dict[str, OpenapiJson]) -> list[FieldRow]:
    """Path, query and header parameters first, then the body."""
    found: list[FieldRow] = []
    for parameter in described.get("parameters", []):
        if "$ref" in parameter:
            parameter = components["parameters"][parameter["$ref"].rpartition("/")[2]]
        field: OpenapiJson = parameter["schema"] | {"description": parameter.get("description", "")}
        found += field_rows({"properties": {parameter["name"]: field}}, schemas, parameter["in"])
        found[-1] = FieldRow(found[-1].name, found[-1].place, found[-1].kind, parameter["required"], found[-1].text)
    body = described.get("requestBody")
    if body is not None:
        found += field_rows(body["content"]["application/json"]["schema"], schemas, "body")
    return found


def _answer_rows(operation: AnyOperation, described: OpenapiJson, schemas: dict[str, OpenapiJson]) -> tuple[str, tuple[FieldRow, ...]]:
    """What comes back: in a word, and field by field."""
    if is_document_answer(operation):
        return " or ".join(document_media_types(operation)), ()
    schema: OpenapiJson = described["responses"][str(operation.status)]["content"]["application/json"]["schema"]
    return field_kind(schema, schemas), tuple(field_rows(schema, schemas, ""))


def _reference_example(operation: AnyOperation, example: Example, site: Site) -> ReferenceExample:
    values = cast(Mapping[str, object], example.input)
    answer: object = example.answer
    return ReferenceExample(
        example.title,
        curl_example(operation, values, site.base_url),
        tool_call_example(operation, values),
        None if answer is None else pretty_json(answer),
    )
