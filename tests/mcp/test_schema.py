"""Models as schemas that are short and still say everything."""

from typing import Annotated, Any, Literal

import pytest
from inline_snapshot import snapshot
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from registry.operation import Input, Once, Scope, operation
from registry.schema import input_schema, output_schema


class Window(Input):
    """From when to when."""

    start: str = Field(description="First day.")
    title: str | None = Field(None, description="Shown above.", max_length=9, pattern=r"^[^\x00-\x1f]+$")


class Order(Input):
    """What the model's own docstring says is not shown."""

    kind: Literal["a", "b"] = "a"
    window: Annotated[Window, Field(description="The time of the order.")]
    spare: Window | None = None
    gone: str | None = Field(description="Null clears it; absent is an error.")
    free: dict[Annotated[str, Field(pattern=r"^[^\x00]{1,9}$")], str] = Field({}, description="Notes.")
    iccid: str = Field(pattern="^89[0-9]+$", description="Serial number.")
    tags: dict[str, int | str] = Field({}, description="Labels.")


class Tree(TypedDict):
    name: str
    children: "list[Tree]"


class Left(TypedDict):
    left: int


class Right(BaseModel):
    right: int


@operation("POST", "/v1/orders/{kind}", scope=Scope.WRITE, confirm=True, once=Once(required=True))
async def place_order(ctx: Ctx, params: Order) -> Left:
    """Place an order."""
    return await ctx.settle({"left": len(params.kind)})


def test_an_input_has_no_titles_no_references_and_no_second_way_to_say_nothing() -> None:
    assert input_schema(place_order) == snapshot(
        {
            "type": "object",
            "properties": {
                "kind": {"default": "a", "enum": ["a", "b"], "type": "string"},
                "window": {
                    "additionalProperties": False,
                    "description": "The time of the order.",
                    "properties": {
                        "start": {"description": "First day.", "type": "string"},
                        "title": {"type": "string", "description": "Shown above."},
                    },
                    "required": ["start"],
                    "type": "object",
                },
                "spare": {
                    "additionalProperties": False,
                    "description": "From when to when.",
                    "properties": {
                        "start": {"description": "First day.", "type": "string"},
                        "title": {"type": "string", "description": "Shown above."},
                    },
                    "required": ["start"],
                    "type": "object",
                },
                "gone": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "Null clears it; absent is an error."},
                "free": {"default": {}, "description": "Notes.", "type": "object", "additionalProperties": {"type": "string"}},
                "iccid": {"description": "Serial number.", "pattern": "^89[0-9]+$", "type": "string"},
                "tags": {
                    "additionalProperties": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                    "default": {},
                    "description": "Labels.",
                    "type": "object",
                },
                "idempotency_key": {"type": "string", "description": "Same key, one effect: a UUID."},
                "confirm_token": {"type": "string", "description": "Of the first answer, if the user agrees."},
            },
            "required": ["window", "gone", "iccid", "idempotency_key"],
            "additionalProperties": False,
        }
    )


@pytest.mark.parametrize(
    ("result", "value"),
    [
        (Left, {"left": 1}),
        (Right, {"right": 1}),
        (Left | Right, {"right": 1}),
        (list[Left], {"data": [{"left": 1}]}),
        (str | None, {"result": None}),
        (Left | None, {"result": {"left": 1}}),
        (bool, {"result": True}),
        (Tree, {"name": "a", "children": [{"name": "b", "children": []}]}),
        (dict[str, int], {"a": 1}),
    ],
)
def test_an_answer_has_an_object_at_its_root(result: Any, value: object) -> None:
    schema = output_schema(result).schema
    assert schema["type"] == "object"
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(value)


def test_a_definition_that_holds_itself_stays_a_definition() -> None:
    schema = output_schema(Tree).schema
    assert list(schema["$defs"]) == ["Tree"]
    assert not Draft202012Validator(schema).is_valid({"name": "a", "children": [{"name": 1}]})


def test_a_field_called_title_is_kept() -> None:
    assert list(input_schema(place_order)["properties"]["window"]["properties"]) == ["start", "title"]
