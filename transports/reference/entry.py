"""What the reference says about one operation, whatever it is rendered as."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from registry.binding import SEGMENT
from registry.catalogue import AnyOperation, Catalogue, Toolset
from registry.limits import Scope
from registry.operation import Auth, Example
from registry.ports import Site
from transports.openapi.document import build_document
from transports.openapi.refusals import RULES, Fault, faults_of
from transports.openapi.responses import is_document, media_types
from transports.openapi.schemas import Json
from transports.reference.calls import curl, pretty, tool_call
from transports.reference.fields import Row, kind, rows

CREDENTIAL: Mapping[Auth, str] = {
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
class ShownExample:
    """One call and its answer, ready to paste."""

    title: str
    curl: str
    tool_call: str | None
    answer: str | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One operation."""

    operation: AnyOperation
    details: str
    notes: tuple[tuple[str, str], ...]
    inputs: tuple[Row, ...]
    answer_kind: str
    answer: tuple[Row, ...]
    examples: tuple[ShownExample, ...]
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class Chapter:
    """One toolset and its operations."""

    toolset: Toolset
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """The whole reference. `faults` are those that every operation can answer with."""

    site: Site
    chapters: tuple[Chapter, ...]
    faults: tuple[Fault, ...]

    def chapter(self, name: str) -> Chapter | None:
        """The chapter of a toolset."""
        return next((chapter for chapter in self.chapters if chapter.toolset.name == name), None)


def build_reference(catalogue: Catalogue, site: Site) -> Reference:
    """Read the catalogue through its OpenAPI document, so that the two cannot differ."""
    document = build_document(catalogue, site)
    chapters = [
        Chapter(toolset, tuple(entry(operation, document, site) for operation in found))
        for toolset in catalogue.toolsets
        if (found := toolset.operations())
    ]
    return Reference(site, tuple(chapters), tuple(told for _, told in RULES if told.everywhere))


def entry(operation: AnyOperation, document: Json, site: Site) -> Entry:
    """One operation, with everything that is told about it."""
    described: Json = document["paths"][operation.path][operation.method.lower()]
    schemas: dict[str, Json] = document["components"].get("schemas", {})
    kind_of_answer, answer = answer_of(operation, described, schemas)
    return Entry(
        operation=operation,
        details=operation.description.partition("\n")[2].strip(),
        notes=tuple(notes(operation)),
        inputs=tuple(inputs(described, document["components"], schemas)),
        answer_kind=kind_of_answer,
        answer=answer,
        examples=tuple(shown(operation, example, site) for example in operation.examples or (bare(operation),)),
        faults=tuple(told for told in faults_of(operation) if not told.everywhere),
    )


def notes(operation: AnyOperation) -> list[tuple[str, str]]:
    """What the schema does not say."""
    found = [("Credential", CREDENTIAL[operation.auth])]
    if operation.auth in (Auth.BEARER, Auth.SESSION):
        found.append(("Access", access(operation)))
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
    if operation.upstream:
        found.append(("Upstream", "Reaches the charging system: your organisation must be connected."))
    if operation.processor:
        found.append(("Payments", "Reaches the payment processor, in your organisation's own account there."))
    if operation.forms:
        found.append(("Answer", f"JSON, or {' or '.join(f'`{name}`' for name in operation.forms)} where it is asked for."))
    found.append(("Quota", "One call of the daily quota." if operation.charged else "Not charged."))
    return found


def access(operation: AnyOperation) -> str:
    """Who may call it."""
    if operation.scope & Scope.ADMIN:
        return "Admin: the tier enterprise and the role admin."
    if operation.scope & Scope.WRITE:
        return "Write: the tiers pro and enterprise."
    return "Read: every tier." if operation.read_only else "Every tier."


def inputs(described: Json, components: Json, schemas: dict[str, Json]) -> list[Row]:
    """Path, query and header parameters first, then the body."""
    found: list[Row] = []
    for parameter in described.get("parameters", []):
        if "$ref" in parameter:
            parameter = components["parameters"][parameter["$ref"].rpartition("/")[2]]
        field: Json = parameter["schema"] | {"description": parameter.get("description", "")}
        found += rows({"properties": {parameter["name"]: field}}, schemas, parameter["in"])
        found[-1] = Row(found[-1].name, found[-1].place, found[-1].kind, parameter["required"], found[-1].text)
    body = described.get("requestBody")
    if body is not None:
        found += rows(body["content"]["application/json"]["schema"], schemas, "body")
    return found


def answer_of(operation: AnyOperation, described: Json, schemas: dict[str, Json]) -> tuple[str, tuple[Row, ...]]:
    """What comes back: in a word, and field by field."""
    if is_document(operation):
        return " or ".join(media_types(operation)), ()
    schema: Json = described["responses"][str(operation.status)]["content"]["application/json"]["schema"]
    return kind(schema, schemas), tuple(rows(schema, schemas, ""))


def bare(operation: AnyOperation) -> Example:
    """A call of an operation that declares no example: the placeholders of its path."""
    return Example("Call it", {name: f"<{name}>" for name in SEGMENT.findall(operation.path)})


def shown(operation: AnyOperation, example: Example, site: Site) -> ShownExample:
    """An example in every form."""
    values = cast(Mapping[str, object], example.input)
    answer: object = example.answer
    return ShownExample(
        example.title, curl(operation, values, site.base_url), tool_call(operation, values), None if answer is None else pretty(answer)
    )
