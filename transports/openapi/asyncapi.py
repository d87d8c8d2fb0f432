"""The AsyncAPI 3.0 document: what the service sends of events, to whom, and how it is signed; and GET /asyncapi.json."""

from functools import cached_property, lru_cache

import orjson

from operations.event_types.declaration import AnyEventType
from registry.catalogue import Catalogue
from registry.ports import Site
from transports.openapi.document import INTERFACE_VERSION
from transports.openapi.event_schemas import (
    DELIVERY_ANSWER,
    DELIVERY_HEADERS,
    described_event_types,
    event_description,
    event_example,
    event_title,
    is_report,
    put_event_schema,
)
from transports.openapi.page import OpenapiPage, Representation
from transports.openapi.schemas import Components, OpenapiJson

ASYNCAPI_PATH = "/asyncapi.json"
_ASYNCAPI_ABOUT = """Events of connectivity as signed POSTs to receivers of yours.

A delivery comes at least once and in no promised order: `webhook-id` says which event it is. A receiver verifies a signature over the
bytes of the body before it parses them. The same events are `webhooks` of the OpenAPI document, which describes all calls, too."""

_CHANNELS = {
    "webhook": ("Webhook endpoints", "An address that an organisation registered as a webhook endpoint."),
    "schedule": ("Addresses of schedules", "The address that a schedule of reports was made with; it gets reports of that schedule alone."),
}
_POST: OpenapiJson = {"http": {"method": "POST", "bindingVersion": "0.3.0"}}


@lru_cache(maxsize=2)
def build_asyncapi(catalogue: Catalogue, site: Site) -> OpenapiJson:
    """The document. Nobody changes what is returned."""
    event_types = described_event_types(catalogue)
    components = Components({})
    messages = {event_title(each): _message(each, components) for each in event_types}
    by_channel: dict[str, list[str]] = {}
    for each in event_types:
        by_channel.setdefault("schedule" if is_report(each) else "webhook", []).append(event_title(each))
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Connectivity Reseller events",
            "version": INTERFACE_VERSION,
            "description": _ASYNCAPI_ABOUT,
            "license": {"name": "MIT License", "url": "https://opensource.org/license/mit"},
            "externalDocs": {"description": "Every type of events with its members", "url": f"{site.docs_url}/event-types"},
        },
        "defaultContentType": "application/json",
        "servers": {"receiver": _receiver()},
        "channels": {name: _channel(name, titles) for name, titles in by_channel.items()},
        "operations": {f"send_to_{name}": _sending(name, titles) for name, titles in by_channel.items()},
        "components": {
            "messages": messages,
            "messageTraits": {"delivery": _delivery()},
            "schemas": dict(sorted(components.schemas.items())),
        },
    }


def _receiver() -> OpenapiJson:
    host = {"description": "Host of the receiver's address.", "default": "hooks.example.com"}
    about = "Yours: a public https address, or one in a network that the operator opened to your organisation."
    return {"host": "{host}", "protocol": "https", "description": about, "variables": {"host": host}}


def _channel(name: str, titles: list[str]) -> OpenapiJson:
    title, about = _CHANNELS[name]
    return {
        "address": None,  # the receiver's own
        "title": title,
        "description": about,
        "servers": [{"$ref": "#/servers/receiver"}],
        "messages": {each: {"$ref": f"#/components/messages/{each}"} for each in titles},
    }


def _sending(name: str, titles: list[str]) -> OpenapiJson:
    return {
        "action": "send",
        "channel": {"$ref": f"#/channels/{name}"},
        "title": f"Send to {_CHANNELS[name][0].lower()}",
        "description": DELIVERY_ANSWER,
        "bindings": _POST,
        "messages": [{"$ref": f"#/channels/{name}/messages/{each}"} for each in titles],
    }


def _message(event_type: AnyEventType, components: Components) -> OpenapiJson:
    headers = {name: header.example for name, header in DELIVERY_HEADERS.items()}
    return {
        "name": event_type.name,
        "title": event_title(event_type),
        "summary": event_type.about,
        "description": event_description(event_type),
        "traits": [{"$ref": "#/components/messageTraits/delivery"}],
        "payload": put_event_schema(event_type, components),
        "examples": [{"name": "delivery", "headers": headers, "payload": event_example(event_type)}],
    }


def _delivery() -> OpenapiJson:
    """What all messages share: their headers, and which of them names the event."""
    headers = {name: {**header.schema, "description": header.about} for name, header in DELIVERY_HEADERS.items()}
    return {
        "contentType": "application/json",
        "headers": {"type": "object", "properties": headers, "required": list(headers)},
        "correlationId": {"description": "The event's id: the same with every try.", "location": "$message.header#/webhook-id"},
    }


def asyncapi_bytes(catalogue: Catalogue, site: Site, *, pretty: bool = False) -> bytes:
    """The document as JSON; `pretty` for files that people read and compare."""
    return orjson.dumps(build_asyncapi(catalogue, site), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE if pretty else 0)


class AsyncapiPage(OpenapiPage):
    """GET /asyncapi.json, served as the OpenAPI document is."""

    @cached_property
    def representation(self) -> Representation:
        return Representation(asyncapi_bytes(self._catalogue, self._site), "application/json", "public, max-age=300")
