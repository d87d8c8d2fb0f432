"""Operations that exist to be described: one of each kind that the document has a rule for."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.vocabulary import ListOf
from registry.errors import Conflict, NotSupported
from registry.operation import Auth, Document, Example, Input, Nothing, Once, Scope, operation


class Colour(Conflict):
    """The colour is taken."""

    code = "colour_taken"


class LampRef(Input):
    """Which lamp."""

    id: Annotated[str, Field(pattern=r"^lmp_[a-z]+$", description="Id of the lamp.")]


class Picture(LampRef):
    """Which picture."""

    format: Annotated[Literal["svg", "png"], Field(description="Kind of picture.")]


class LampQuery(Input):
    """Which lamps."""

    limit: Annotated[int, Field(ge=1, le=100, description="How many, 1-100.")] = 20
    colour: Annotated[Literal["red", "green"] | None, Field(description="Only these.")] = None
    rooms: Annotated[list[str] | None, Field(max_length=5, description="Only in these rooms.")] = None


class NewLamp(Input):
    """A lamp as it is ordered."""

    watts: Annotated[float, Field(gt=0, le=100, description="Power in watts, more than 0, at most 100.")]
    note: Annotated[str | None, Field(max_length=40, description="For you, at most 40 characters.")] = None


class Dimmed(LampRef):
    """How bright."""

    percent: Annotated[int, Field(ge=0, le=100, description="Brightness in percent, 0-100.")] = 50


class Lamp(TypedDict):
    """A lamp. `watts` is its power."""

    id: str
    watts: float
    colour: Literal["red", "green"] | None


LAMP: Lamp = {"id": "lmp_a", "watts": 7.5, "colour": None}


@operation("GET", "/v1/about", scope=Scope.NONE, auth=Auth.PUBLIC)
async def about_lamps(ctx: Ctx, params: Nothing) -> Lamp:
    """Tell about lamps."""
    del ctx, params
    return LAMP


@operation(
    "GET",
    "/v1/lamps",
    examples=[
        Example(
            "Red lamps of two rooms", {"colour": "red", "rooms": ["hall", "attic"]}, {"object": "list", "data": [LAMP], "has_more": False}
        )
    ],
)
async def list_lamps(ctx: Ctx, params: LampQuery) -> ListOf[Lamp]:
    """List lamps | newest first."""
    del ctx, params
    return {"object": "list", "data": [LAMP], "has_more": False}


@operation("GET", "/v1/lamps/{id}/picture.{format}", tool=False)
async def get_lamp_picture(ctx: Ctx, params: Picture) -> Annotated[Document, "image/svg+xml", "image/png"]:
    """Draw a lamp."""
    del ctx, params
    return Document(b"<svg/>", "image/svg+xml")


@operation("GET", "/v1/lamps/{id}/card", examples=[Example("A card", {"id": "lmp_a"}, LAMP)])
async def get_lamp_card(ctx: Ctx, params: LampRef) -> Lamp | Annotated[Document, "text/html", "text/plain"]:
    """Show a lamp, or its card."""
    del ctx, params
    return LAMP


@operation(
    "POST",
    "/v1/lamps",
    scope=Scope.WRITE,
    once=Once(required=True, forever=True, alias="X-Idempotency-Key"),
    status=201,
    raises=[Colour],
    examples=[Example("It's a lamp", {"watts": 7.5}, LAMP)],
)
async def create_lamp(ctx: Ctx, params: NewLamp) -> Lamp:
    """Order a lamp.

    It comes **unlit**. See <b>list_lamps</b>.
    """
    del params
    return await ctx.settle(LAMP)


@operation("POST", "/v1/lamps/{id}/dim", scope=Scope.ANY)
async def dim_lamp(ctx: Ctx, params: Dimmed) -> Lamp:
    """Dim a lamp."""
    del params
    return await ctx.settle(LAMP)


@operation("POST", "/v1/lamps/{id}/blink", auth=Auth.INTERNAL, scope=Scope.ANY)
async def blink_lamp(ctx: Ctx, params: LampRef) -> Lamp:
    """Make a lamp blink."""
    del params
    return await ctx.settle(LAMP)


@operation("DELETE", "/v1/lamps/{id}", scope=Scope.ADMIN, confirm=True, upstream=True, raises=[NotSupported])
async def remove_lamp(ctx: Ctx, params: LampRef) -> Lamp:
    """Remove a lamp."""
    del ctx, params
    return LAMP
