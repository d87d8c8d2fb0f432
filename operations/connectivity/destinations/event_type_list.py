"""The types of events that there are."""

from typing import Annotated, NotRequired, cast

from pydantic import Field, JsonValue, TypeAdapter
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.event_types.catalogue import EVENT_TYPES
from operations.event_types.declaration import AnyEventType
from operations.event_types.payment import DISPUTE_OPENED
from operations.ledger.event_reading import TypePatterns, wanted_types
from operations.vocabulary import ListOf, list_page
from registry.operation import Example, Input, operation


class EventTypesQuery(Input):
    """Which types, and how much of them."""

    types: TypePatterns = None
    schemas: Annotated[bool, Field(description="With the JSON Schema of data and an example.")] = False


class DescribedEventType(TypedDict):
    """A type of events: its name, when such an event is written, the release that had it first, and who may read it."""

    type: str
    about: str
    version: int
    since: str
    admins_only: bool
    read_with: Annotated[str, Field(description="The operation that shows the thing; who may not call it sees no such event")]
    schema: NotRequired[dict[str, JsonValue]]
    example: NotRequired[dict[str, JsonValue]]


def describe_type(declared: AnyEventType, *, schemas: bool) -> DescribedEventType:
    """A declared type as it is shown."""
    shown: DescribedEventType = {
        "type": declared.name,
        "about": declared.about,
        "version": declared.version,
        "since": declared.since,
        "admins_only": declared.admin,
        "read_with": declared.read_with,
    }
    if schemas:
        shown["schema"] = TypeAdapter[object](declared.data).json_schema()
        shown["example"] = cast("dict[str, JsonValue]", dict(declared.example))
    return shown


@operation(
    "GET",
    "/v1/connectivity/event_types",
    title="List event types",
    examples=[
        Example(
            "What is told of disputes?",
            {"types": ["payment.dispute_opened"]},
            {"object": "list", "data": [describe_type(DISPUTE_OPENED, schemas=False)], "has_more": False},
        )
    ],
)
async def list_event_types(ctx: Ctx, params: EventTypesQuery) -> ListOf[DescribedEventType]:
    """List the types of events that you may read, in families.

    `types` narrows it by names or globs. A webhook endpoint, a stream or a list takes the same names and globs.
    """
    # Choice: no pages, since there are some dozens, and which ones are shown is what the declarations say.
    wanted = wanted_types(params.types, ctx.caller, ctx.deps.internal_calls.operations_in)
    shown = [describe_type(declared, schemas=params.schemas) for name, declared in EVENT_TYPES.items() if name in wanted]
    return list_page(shown, len(EVENT_TYPES))
