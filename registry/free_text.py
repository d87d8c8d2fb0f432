"""Text in answers that somebody typed or another system named: its fields are marked where they are declared, so that doors can name them.

Whoever wrote such a text may have written to a model: it is data, never an instruction.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, cast

FREE_TEXT_KEYWORD = "x-free-text"
"""In JSON schemas: the value, or everything in it, is free text."""


class FreeTextMark:
    """Metadata of a field; pydantic writes it into schemas of the field."""

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        return {**handler(core), FREE_TEXT_KEYWORD: True}


FREE_TEXT = FreeTextMark()
FreeText = Annotated[str, FREE_TEXT]
"""A name, a note, a comment, an e-mail address: what people or other systems wrote."""

ANY_ROW, ANY_MEMBER = "[]", "*"


class FreeTextPath(NamedTuple):
    """Where free text may stand in an answer: names of members, ANY_ROW of a list, ANY_MEMBER of an object with free names.

    `pattern` is the same for people, such as `data[].name`.
    """

    steps: tuple[str, ...]
    pattern: str


def free_text_path(*steps: str) -> FreeTextPath:
    return FreeTextPath(steps, ".".join(steps).replace(f".{ANY_ROW}", ANY_ROW))


def find_free_text(schema: Mapping[str, Any], definitions: Mapping[str, Mapping[str, Any]]) -> tuple[FreeTextPath, ...]:
    """The paths to all marked values of `schema`, whose references are to `definitions`."""
    return tuple(dict.fromkeys(free_text_path(*steps) for steps in _marked_steps(schema, definitions, (), ())))


def _marked_steps(
    schema: Mapping[str, Any], definitions: Mapping[str, Mapping[str, Any]], steps: tuple[str, ...], opened: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    if schema.get(FREE_TEXT_KEYWORD):
        yield steps
        return
    reference = str(schema.get("$ref", "")).rpartition("/")[2]
    if reference in opened:  # it holds itself: the first level stands for all
        return
    if reference:
        yield from _marked_steps(definitions[reference], definitions, steps, (*opened, reference))
    for kind in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from _marked_steps(kind, definitions, steps, opened)
    for name, field in schema.get("properties", {}).items():
        yield from _marked_steps(field, definitions, (*steps, name), opened)
    for keyword, step in (("items", ANY_ROW), ("additionalProperties", ANY_MEMBER)):
        if isinstance(schema.get(keyword), dict):
            yield from _marked_steps(schema[keyword], definitions, (*steps, step), opened)


def has_free_text(schema: Mapping[str, Any]) -> bool:
    """Whether a value of `schema` is free text, or a list or free names of it; objects with fields of their own are not looked into."""
    parts: tuple[Any, ...] = (*schema.get("anyOf", ()), schema.get("items"), schema.get("additionalProperties"))
    return bool(schema.get(FREE_TEXT_KEYWORD)) or any(
        has_free_text(cast("dict[str, Any]", part)) for part in parts if isinstance(part, dict)
    )


def held_free_text(value: object, paths: Sequence[FreeTextPath]) -> tuple[str, ...]:
    """The patterns of those `paths` that lead to a text in the answer `value` which is not empty."""
    return tuple([path.pattern for path in paths if _leads_to_text(value, path.steps)])


def _leads_to_text(value: object, steps: tuple[str, ...]) -> bool:
    for place, step in enumerate(steps, 1):
        if step == ANY_ROW:
            return isinstance(value, list) and any(_leads_to_text(row, steps[place:]) for row in cast("list[object]", value))
        if not isinstance(value, dict):
            return False
        members = cast("dict[str, object]", value)
        if step == ANY_MEMBER:
            return any(_leads_to_text(member, steps[place:]) for member in members.values())
        value = members.get(step)
    return isinstance(value, str) and value != ""
