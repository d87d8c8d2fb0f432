"""A validation failure as one sentence: the field, the value seen, the rule, the fix."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, ValidationError

from registry.characters import printable_text
from registry.errors import BadRequest
from registry.input_bounds import InputPath, InputTooLarge
from registry.operation import FieldRule, Input, field_spellings, shown_field_name
from registry.redaction import redact

PLAIN_WORD = re.compile(r"[A-Za-z0-9_-]{1,40}")
NO_INPUT_HEADERS: Mapping[str, str] = MappingProxyType({})
RULE_TEXTS: Mapping[str, str] = {
    "greater_than": "must be > {gt}",
    "greater_than_equal": "must be >= {ge}",
    "less_than": "must be < {lt}",
    "less_than_equal": "must be <= {le}",
    "string_too_long": "must be at most {max_length} {characters}",
    "string_too_short": "must be at least {min_length} {characters}",
    "too_long": "must hold at most {max_length} {entries}",
    "too_short": "must hold at least {min_length} {entries}",
    "string_pattern_mismatch": "must match {pattern}",
    "literal_error": "must be one of {expected}",
    "enum": "must be one of {expected}",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "int_parsing": "must be an integer",
    "int_parsing_size": "must be an integer, and of fewer digits",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "list_type": "must be an array",
}


def refuse_input(model: type[BaseModel], error: ValidationError, headers: Mapping[str, str] = NO_INPUT_HEADERS) -> BadRequest:
    """The refusal of an input that pydantic found wrong."""
    return refuse_first_problem(model, error.errors(include_url=False), headers)


def refuse_first_problem(
    model: type[BaseModel], details: Sequence[ErrorDetails], headers: Mapping[str, str] = NO_INPUT_HEADERS
) -> BadRequest:
    """The refusal of the first problem, with the fix. Unknown fields come first, since they are often misspelt names."""
    first = next((d for d in details if d["type"] == "extra_forbidden"), details[0])
    param = input_path_text(first["loc"]) or None
    if first["type"] == "extra_forbidden":
        return refuse_unknown_field(model, first["loc"], param or "", headers)
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    shown = printable_text(redact(param[:80])) if param else None
    if shown is None and first["type"] == "value_error":  # a rule about several fields names them itself
        return refuse_field_rule(first)
    secret = is_secret_field(model, first)
    told, hint = describe_problem(first, secret=secret), field_hint(model, first, secret=secret)
    return BadRequest(f"{shown or 'input'}: {told}{more}", param=shown, hint=hint)


def refuse_too_large(model: type[BaseModel], problem: InputTooLarge, headers: Mapping[str, str] = NO_INPUT_HEADERS) -> BadRequest:
    """The refusal of what was found by its count, in the words that pydantic's own error would have had."""
    if problem.kind == "extra_forbidden":
        return refuse_unknown_field(model, problem.loc, input_path_text(problem.loc), headers)
    context = {"max_length": problem.most, "actual_length": len(problem.value)}
    return refuse_first_problem(
        model, [{"type": "too_long", "loc": problem.loc, "msg": "", "input": problem.value, "ctx": context}], headers
    )


def refuse_field_rule(detail: ErrorDetails) -> BadRequest:
    rule = detail.get("ctx", {}).get("error", detail["msg"])
    return BadRequest(str(rule), param=rule.param, hint=rule.hint) if isinstance(rule, FieldRule) else BadRequest(str(rule))


def input_path_text(loc: InputPath) -> str:
    """Where in the input: `events[3].iccid`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc if part != "[key]")
    return "".join(parts).removeprefix(".")


def refuse_unknown_field(model: type[BaseModel], loc: InputPath, param: str, headers: Mapping[str, str]) -> BadRequest:
    """The refusal of an unknown field; it lists the fields of the object around it."""
    shown, fields = printable_text(redact(param[:80])), known_fields_at(model, loc[:-1])
    inside = next((m for m in models_at(model, loc[:-1]) if str(loc[-1]) in field_spellings(m)), None)
    if inside is not None:
        field = field_spellings(inside)[str(loc[-1])]
        canonical = shown_field_name(field, inside.model_fields[field])
        return BadRequest(f"{shown}: given twice, it is another spelling of {canonical}", param=shown, hint=f"Send {canonical} once")
    header = find_meant_header(param, headers)
    if header is not None:
        return refuse_header_as_field(shown, header)
    known = ", ".join(fields) or "none"
    later = next((found.set_later.get(str(loc[-1])) for found in models_at(model, loc[:-1]) if issubclass(found, Input)), None)
    advice = "Remove it" if later is None else f"Remove it; {later} sets it afterwards"
    return BadRequest(f"{shown}: unknown field", code="unknown_field", param=shown, hint=f"{advice}. Known fields: {known}")


def known_fields_at(model: type[BaseModel], loc: InputPath) -> list[str]:
    """The fields that are known at a place in the input, each once."""
    known = (shown_field_name(name, info) for found in models_at(model, loc) for name, info in found.model_fields.items())
    return list(dict.fromkeys(known))


def models_at(model: type[BaseModel], loc: InputPath) -> list[type[BaseModel]]:
    """Which models the object at a place in the input may be. A place in a list leads nowhere else."""
    here = [model]
    for part in loc:
        field = next((info for found in here if (info := find_field(found, part)) is not None), None)
        here = here if field is None else models_in_type(field.annotation)
    return here


def models_in_type(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in get_args(annotation) for found in models_in_type(part)]


def find_field(model: type[BaseModel], name: str | int) -> FieldInfo | None:
    return next((info for own, info in model.model_fields.items() if name in (own, info.alias)), None)


def find_meant_header(name: str, headers: Mapping[str, str]) -> str | None:
    """The header that a field of this name is meant for; `headers` are by their letters alone."""
    return headers.get("".join(filter(str.isalpha, name.casefold())).removeprefix("x"))


def refuse_header_as_field(name: str, header: str) -> BadRequest:
    text = f"{name}: unknown field; it is the header {header}"
    argument = header.removeprefix("X-").lower().replace("-", "_")
    how = f"Send it as the header {header} and not in body or query; a tool call has the argument {argument}"
    return BadRequest(text, code="unknown_field", param=name, hint=how)


def describe_problem(detail: ErrorDetails, *, secret: bool = False) -> str:
    """What was seen, unless it is a secret, and what the rule is."""
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "missing":
        return "missing; it is required"
    got = "" if secret else f"got {describe_value(detail['input'])}; "
    if kind in ("value_error", "assertion_error"):
        return f"{got}{context.get('error', detail['msg'])}"
    template = RULE_TEXTS.get(kind)
    rule = template.format_map({**context, **length_units(context)}) if template else detail["msg"][:1].lower() + detail["msg"][1:]
    return f"{got}{rule}"


def length_units(context: Mapping[str, Any]) -> Mapping[str, str]:
    """What a length is counted in: 1 entry, 2 entries."""
    one = 1 in (context.get("min_length"), context.get("max_length"))
    return {"entries": "entry" if one else "entries", "characters": "character" if one else "characters"}


def is_secret_field(model: type[BaseModel], detail: ErrorDetails) -> bool:
    """Whether the value of the field at fault may not be repeated: a field that is declared with `repr=False`, or one inside such."""
    return any(not info.repr for info in fields_on_path(model, detail["loc"]))


def describe_value(value: Any) -> str:
    """The offending value: short, and without anything that may be a secret."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "an array"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = printable_text(redact(str(value)[:200]))  # 60 characters are shown, and masking takes time by the square of the length
    shown = text if len(text) <= 60 else text[:57] + "..."
    return f'"{shown}"' if isinstance(value, str) else shown


def field_hint(model: type[BaseModel], detail: ErrorDetails, *, secret: bool = False) -> str | None:
    """The description of the field at fault, or of the innermost around it that has one; first how a word of the wrong case is written."""
    told = next((info.description for info in reversed(fields_on_path(model, detail["loc"])) if info.description), None)
    cased = None if secret else word_in_right_case(detail)
    return told if cased is None else f"Write {cased}" + (f". {told}" if told else "")


def word_in_right_case(detail: ErrorDetails) -> str | None:
    """The value in upper or lower case, where that alone was wrong with it."""
    value, context = detail["input"], detail.get("ctx", {})
    if not isinstance(value, str) or not PLAIN_WORD.fullmatch(value) or redact(value) != value:
        return None
    cases = (("upper", value.upper()), ("lower", value.lower()))
    return next((f'"{word}", in {case} case' for case, word in cases if matches_rule(word, context)), None)


def matches_rule(word: str, context: Mapping[str, Any]) -> bool:
    return f"'{word}'" in context.get("expected", "") or bool("pattern" in context and re.search(context["pattern"], word))


def fields_on_path(model: type[BaseModel], loc: InputPath) -> list[FieldInfo]:
    """The fields on the way to a place in the input, outermost first."""
    steps = ((models_at(model, loc[:depth]), part) for depth, part in enumerate(loc))
    return [info for here, part in steps for found in here if (info := find_field(found, part)) is not None]
