"""A validation failure as one sentence: the field, the value seen, the rule, the fix."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, ValidationError

from registry import spelling
from registry.errors import BadRequest
from registry.input_shape import TooMuch
from registry.model import FieldRule
from registry.redaction import mask

Loc: TypeAlias = tuple[int | str, ...]
WORD = re.compile(r"[A-Za-z0-9_-]{1,40}")
NO_HEADERS: Mapping[str, str] = MappingProxyType({})
RULES: Mapping[str, str] = {
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
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "list_type": "must be an array",
}


def refuse(model: type[BaseModel], error: ValidationError, headers: Mapping[str, str] = NO_HEADERS) -> BadRequest:
    """The refusal of an input that pydantic found wrong."""
    return refuse_first(model, error.errors(include_url=False), headers)


def refuse_first(model: type[BaseModel], details: Sequence[ErrorDetails], headers: Mapping[str, str] = NO_HEADERS) -> BadRequest:
    """The first failure, told so that the caller can mend it; unknown fields go first, since they hide typing errors."""
    first = next((d for d in details if d["type"] == "extra_forbidden"), details[0])
    param = path_of(first["loc"]) or None
    if first["type"] == "extra_forbidden":
        return unknown(model, first["loc"], param or "", headers)
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    shown = printable(mask(param[:80])) if param else None
    if shown is None and first["type"] == "value_error":  # a rule about several fields names them itself
        return broken(first)
    secret = is_secret(model, first)
    told, hint = sentence(first, secret=secret), describe(model, first, secret=secret)
    return BadRequest(f"{shown or 'input'}: {told}{more}", param=shown, hint=hint)


def refuse_excess(model: type[BaseModel], problem: TooMuch, headers: Mapping[str, str] = NO_HEADERS) -> BadRequest:
    """The refusal of what was found by its count, in the words that pydantic's own error would have had."""
    if problem.kind == "extra_forbidden":
        return unknown(model, problem.loc, path_of(problem.loc), headers)
    context = {"max_length": problem.most, "actual_length": len(problem.value)}
    return refuse_first(model, [{"type": "too_long", "loc": problem.loc, "msg": "", "input": problem.value, "ctx": context}], headers)


def broken(detail: ErrorDetails) -> BadRequest:
    """A rule about several fields."""
    rule = detail.get("ctx", {}).get("error", detail["msg"])
    return BadRequest(str(rule), param=rule.param, hint=rule.hint) if isinstance(rule, FieldRule) else BadRequest(str(rule))


def path_of(loc: Loc) -> str:
    """Where in the input: `events[3].iccid`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc if part != "[key]")
    return "".join(parts).removeprefix(".")


def unknown(model: type[BaseModel], loc: Loc, param: str, headers: Mapping[str, str]) -> BadRequest:
    """A field that nothing is called, told with those of the object it stands in."""
    shown, fields = printable(mask(param[:80])), fields_at(model, loc[:-1])
    inside = next((m for m in models_at(model, loc[:-1]) if str(loc[-1]) in spelling.spellings(m)), None)
    if inside is not None:
        field = spelling.spellings(inside)[str(loc[-1])]
        canonical = spelling.shown(field, inside.model_fields[field])
        return BadRequest(f"{shown}: given twice, it is another spelling of {canonical}", param=shown, hint=f"Send {canonical} once")
    header = header_meant(param, headers)
    if header is not None:
        return misplaced(shown, header)
    known = ", ".join(fields) or "none"
    return BadRequest(f"{shown}: unknown field", code="unknown_field", param=shown, hint=f"Remove it. Known fields: {known}")


def fields_at(model: type[BaseModel], loc: Loc) -> list[str]:
    """The fields that are known at a place in the input, each once."""
    known = (spelling.shown(name, info) for found in models_at(model, loc) for name, info in found.model_fields.items())
    return list(dict.fromkeys(known))


def models_at(model: type[BaseModel], loc: Loc) -> list[type[BaseModel]]:
    """Which models the object at a place in the input may be. A place in a list leads nowhere else."""
    here = [model]
    for part in loc:
        field = next((info for found in here if (info := field_named(found, part)) is not None), None)
        here = here if field is None else models_in(field.annotation)
    return here


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models that a type is made of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in get_args(annotation) for found in models_in(part)]


def field_named(model: type[BaseModel], name: str | int) -> FieldInfo | None:
    """The field of this name, as it is written in Python or in JSON."""
    return next((info for own, info in model.model_fields.items() if name in (own, info.alias)), None)


def header_meant(name: str, headers: Mapping[str, str]) -> str | None:
    """The header that a field of this name is meant for; `headers` are by their letters alone."""
    return headers.get("".join(filter(str.isalpha, name.casefold())).removeprefix("x"))


def misplaced(name: str, header: str) -> BadRequest:
    """What belongs into a header came as a field."""
    text = f"{name}: unknown field; it is the header {header}"
    argument = header.removeprefix("X-").lower().replace("-", "_")
    how = f"Send it as the header {header} and not in body or query; a tool call has the argument {argument}"
    return BadRequest(text, code="unknown_field", param=name, hint=how)


def sentence(detail: ErrorDetails, *, secret: bool = False) -> str:
    """What was seen, unless it is a secret, and what the rule is."""
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "missing":
        return "missing; it is required"
    got = "" if secret else f"got {seen(detail['input'])}; "
    if kind in ("value_error", "assertion_error"):
        return f"{got}{context.get('error', detail['msg'])}"
    template = RULES.get(kind)
    rule = template.format_map({**context, **counted(context)}) if template else detail["msg"][:1].lower() + detail["msg"][1:]
    return f"{got}{rule}"


def counted(context: Mapping[str, Any]) -> Mapping[str, str]:
    """What a length is counted in: 1 entry, 2 entries."""
    one = 1 in (context.get("min_length"), context.get("max_length"))
    return {"entries": "entry" if one else "entries", "characters": "character" if one else "characters"}


def is_secret(model: type[BaseModel], detail: ErrorDetails) -> bool:
    """Whether the value of the field at fault may not be repeated: a field that is declared with `repr=False`, or one inside such."""
    return any(not info.repr for info in fields_of(model, detail["loc"]))


def printable(text: str) -> str:
    """Without control, bidi and zero-width characters."""
    return "".join(c if c.isprintable() else "?" for c in text)


def seen(value: Any) -> str:
    """The offending value: short, and without anything that may be a secret."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "an array"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = printable(mask(str(value)[:200]))  # 60 characters are shown, and masking takes time by the square of the length
    shown = text if len(text) <= 60 else text[:57] + "..."
    return f'"{shown}"' if isinstance(value, str) else shown


def describe(model: type[BaseModel], detail: ErrorDetails, *, secret: bool = False) -> str | None:
    """The description of the field at fault, or of the innermost around it that has one; first how a word of the wrong case is written."""
    told = next((info.description for info in reversed(fields_of(model, detail["loc"])) if info.description), None)
    cased = None if secret else in_its_case(detail)
    return told if cased is None else f"Write {cased}" + (f". {told}" if told else "")


def in_its_case(detail: ErrorDetails) -> str | None:
    """The value in upper or lower case, where that alone was wrong with it."""
    value, context = detail["input"], detail.get("ctx", {})
    if not isinstance(value, str) or not WORD.fullmatch(value) or mask(value) != value:
        return None
    cases = (("upper", value.upper()), ("lower", value.lower()))
    return next((f'"{word}", in {case} case' for case, word in cases if fits(word, context)), None)


def fits(word: str, context: Mapping[str, Any]) -> bool:
    """Whether a word is what the rule asks for."""
    return f"'{word}'" in context.get("expected", "") or bool("pattern" in context and re.search(context["pattern"], word))


def fields_of(model: type[BaseModel], loc: Loc) -> list[FieldInfo]:
    """The fields on the way to a place in the input, outermost first."""
    steps = ((models_at(model, loc[:depth]), part) for depth, part in enumerate(loc))
    return [info for here, part in steps for found in here if (info := field_named(found, part)) is not None]
