"""Events as JSON schemas: what an event of each declared type says, in the envelope it is sent in, with an example and its headers."""

import inspect
from collections.abc import Mapping
from typing import NamedTuple, cast

from pydantic import TypeAdapter

from operations.event_types.catalogue import EVENT_TYPES, PROMISED_TYPES
from operations.event_types.declaration import AnyEventType
from operations.intelligence.schedule_reports import INTELLIGENCE_REPORT
from registry.catalogue import Catalogue
from storage.event_log import LINE_FAMILY
from transports.openapi.schemas import Components, OpenapiJson, build_schemas, pascal_case, resolve_schema

_EVENT_ID = "evt_01k0a8w7zv6q4k3m2n1p0r9s8t"
_EVENT_CREATED = 1_795_166_400


class DeliveryHeader(NamedTuple):
    """A header of a delivery: what it holds, in words and as a schema, and one as an example."""

    about: str
    schema: OpenapiJson
    example: str


DELIVERY_HEADERS: Mapping[str, DeliveryHeader] = {
    "webhook-id": DeliveryHeader(
        "The event's id, the same with every try: a receiver that has seen it answers 2xx and does nothing.",
        {"type": "string", "pattern": "^evt_[0-9a-z]+$"},
        _EVENT_ID,
    ),
    "webhook-timestamp": DeliveryHeader(
        "Unix seconds of this try; refuse what is more than five minutes away.",
        {"type": "string", "pattern": "^[0-9]+$"},
        str(_EVENT_CREATED + 1),
    ),
    "webhook-signature": DeliveryHeader(
        "One or more `v1,<base64>`, separated by spaces, of which one that fits is enough (Standard Webhooks): HMAC-SHA256 over "
        "`{webhook-id}.{webhook-timestamp}.{body}`, with the base64 after `whsec_` of the secret as the key.",
        {"type": "string", "pattern": "^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)*$"},
        "v1,hUVxIYXs8Zy9GDiZD1uQbBwXoZGMAB6RVLdZZ3ffmek=",
    ),
    "Connectivity-Signature": DeliveryHeader(
        "`t=<unix>,v1=<hex>`, for receivers that verify this scheme: HMAC-SHA256 over `{t}.{body}`, with the whole secret as the key.",
        {"type": "string", "pattern": "^t=[0-9]+(,v1=[0-9a-f]{64})+$"},
        f"t={_EVENT_CREATED + 1},v1=7ca151e4fc23256c89e882261933d6af9a8be1f09f32dd687e83b0e34da7e68f",
    ),
}

EVENTS_TAG = "webhooks"
EVENTS_SUMMARY = "What happens, by type, with what an event of it says: webhook endpoints get them as signed POSTs, and lists show them."
DELIVERY_ANSWER = (
    "Any 2xx within 15 seconds: the event has arrived, and the body of the answer is not read. Everything else, a redirect included, is a "
    "failure, and the delivery is tried again: ten times in about 75 hours. A 410 disables the receiver."
)


def is_report(event_type: AnyEventType) -> bool:
    """Whether an event of the type goes to the address of a schedule, which no endpoint can choose."""
    return event_type is INTELLIGENCE_REPORT


def described_event_types(catalogue: Catalogue) -> list[AnyEventType]:
    """The types whose objects the catalogue has an operation to read, in the order of their declaration; last the one of schedules."""
    return [each for each in (*EVENT_TYPES.values(), INTELLIGENCE_REPORT) if each.read_with in catalogue.operations]


def event_title(event_type: AnyEventType) -> str:
    """`OrderPaidEvent` of `order.paid`: the name of its schema and of its message."""
    return pascal_case(event_type.name.replace(".", "_")) + "Event"


def event_readers(event_type: AnyEventType) -> str:
    """Who sees events of the type, in a sentence."""
    if event_type.admin:
        return "Admins of the organisation see it."
    return f"Whoever may read {'its line' if event_type.line else 'what it is about'} with `{event_type.read_with}` sees it."


def event_receivers(event_type: AnyEventType) -> str:
    """Where events of the type are sent to, in a sentence."""
    if is_report(event_type):
        return "It is sent to the schedule's own address, and is in no list of events."
    name = event_type.name
    if name in PROMISED_TYPES:
        return f"It is sent to each endpoint that has chosen `{name}`, and to each that has chosen no types."
    return f"It is sent to each endpoint that has chosen `{name}`."


def event_example(event_type: AnyEventType) -> dict[str, object]:
    """A whole event with the declared example as its `data`."""
    data: Mapping[str, object] = event_type.example
    event: dict[str, object] = {
        "id": _EVENT_ID,
        "object": _event_object(event_type),
        "type": event_type.name,
        "livemode": not str(data.get("plan")).startswith("test_"),  # an eSIM of a test plan is no live one
        "created": _EVENT_CREATED,
        "data": data,
    }
    return event | ({"line_seq": 1} if event_type.name.startswith(LINE_FAMILY) else {})


def _event_object(event_type: AnyEventType) -> str:
    return "intelligence.event" if is_report(event_type) else "connectivity.event"


def _event_envelope(event_type: AnyEventType, data: OpenapiJson) -> OpenapiJson:
    """The schema of a whole event; `data` is that of what it says."""
    members: OpenapiJson = {
        "id": {"type": "string", "description": "Id of the event, evt_..."},
        "object": {"type": "string", "const": _event_object(event_type)},
        "type": {"type": "string", "const": event_type.name},
        "livemode": {"type": "boolean", "description": "False for what happened in test mode."},
        "created": {"type": "integer", "format": "int64", "description": "When it happened, in Unix seconds."},
        "data": data,
    }
    if event_type.name.startswith(LINE_FAMILY):
        about = "Of events of lines: counts those of the line, 1, 2, 3 ... without gaps in the log. Who gets some types only sees gaps."
        members["line_seq"] = {"type": "integer", "format": "int64", "minimum": 1, "description": about}
    required = list(members)
    members["test"] = {"type": "boolean", "const": True, "description": "Only in events that somebody had sent as a test."}
    return {"type": "object", "description": event_type.about, "properties": members, "required": required}


def put_event_schema(event_type: AnyEventType, components: Components) -> OpenapiJson:
    """A reference to the schema of a whole event, which becomes a component, as do its `data` and what they are made of."""
    schema, parts = _data_schema(event_type)
    for name, part in parts.items():
        components.put("schemas", name, part)
    data = components.put("schemas", event_type.data.__name__.removesuffix("Data") + "Data", schema)
    return components.put("schemas", event_title(event_type), _event_envelope(event_type, data))


def _data_schema(event_type: AnyEventType) -> tuple[OpenapiJson, dict[str, OpenapiJson]]:
    """The schema of `data`, and those that it refers to by name."""
    adapter: TypeAdapter[object] = TypeAdapter(event_type.data)
    keyed, parts = build_schemas([(event_type.name, "serialization", adapter)])
    [found] = keyed.values()
    schema = resolve_schema(found, parts)
    return schema, {name: part for name, part in parts.items() if part is not schema}


def event_json_schema(event_type: AnyEventType) -> OpenapiJson:
    """The schema of a whole event in one piece, without references."""
    schema, parts = _data_schema(event_type)
    return cast(OpenapiJson, _in_one_piece(_event_envelope(event_type, schema), parts))


def _in_one_piece(value: object, parts: dict[str, OpenapiJson]) -> object:
    """The JSON with what its references point to in their place."""
    if isinstance(value, dict):
        found = cast(OpenapiJson, value)
        whole = resolve_schema(found, parts) | {name: inner for name, inner in found.items() if name != "$ref"}
        return {name: _in_one_piece(inner, parts) for name, inner in whole.items()}
    return [_in_one_piece(inner, parts) for inner in cast("list[object]", value)] if isinstance(value, list) else value


def event_webhooks(event_types: list[AnyEventType], components: Components) -> OpenapiJson:
    """The requests that receivers of events get, by the names of the types, as the OpenAPI document describes them.

    They are references, and repeat their headers: of webhooks that stand in their place openapi-generator 7.26 makes Python that does not
    compile, and references to headers it takes for duplicates.
    """
    return {each.name: components.put("pathItems", event_title(each), _webhook(each, components)) for each in event_types}


def _webhook(event_type: AnyEventType, components: Components) -> OpenapiJson:
    content = {"schema": put_event_schema(event_type, components), "example": event_example(event_type)}
    return {
        "post": {
            "tags": [EVENTS_TAG],
            "operationId": "receive_" + event_type.name.replace(".", "_"),
            "summary": event_type.about,
            "description": event_description(event_type),
            "security": [],
            "parameters": [
                {"name": name, "in": "header", "required": True, "description": each.about, "schema": each.schema, "example": each.example}
                for name, each in DELIVERY_HEADERS.items()
            ],
            "requestBody": {"required": True, "content": {"application/json": content}},
            "responses": {"2XX": {"description": DELIVERY_ANSWER}},
        }
    }


def event_description(event_type: AnyEventType) -> str:
    """Where events of the type go, who sees them, what `data` holds, and since when they are."""
    data = inspect.getdoc(event_type.data) or ""
    since = f"Version {event_type.version}, since {event_type.since}."
    return "\n\n".join((f"{event_receivers(event_type)} {event_readers(event_type)} {since}", data)).strip()
