"""JSON from outside: what is legal JSON and still not welcome (docs/security.md)."""

import json
import math
import re
from typing import Any, cast

import orjson

from registry.errors import BadRequest

JSON_DEPTH_LIMIT = 32
JSON_VALUES_LIMIT = 20_000
JSON_STRING_LIMIT = 64 * 1024
JSON_INTEGER_LIMIT = 2**53 - 1
JSON_UNDECIDED = object()
JSON_QUOTES_LIMIT = 4 * JSON_VALUES_LIMIT
"""Each value may be a text, and have a name: four quotes."""
ALL_BUT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
DIGITS_AS_ZERO = bytes.maketrans(b"123456789", b"000000000")
MANY_DIGITS = b"0" * 16
"""May be more than an integer can hold."""
# What stands behind a point is no integer.
LONG_INTEGER = re.compile(rb"(?:^|[\[,:])-?[0-9]{16,}(?:[,\]}]|$)")


def parse_json(raw: bytes) -> Any:
    """The value, or BadRequest that says what is wrong with it."""
    value = parse_plain_json(raw)
    return parse_json_slowly(raw) if value is JSON_UNDECIDED else value


def parse_plain_json(raw: bytes, *, depth: int = JSON_DEPTH_LIMIT) -> Any:
    """The value, or UNDECIDED where a slower reader has to look; BadRequest: it has too many values or levels.

    Counting outside the strings costs microseconds and bounds what reading costs. orjson then takes whatever is plain.
    """
    escaped = raw.replace(b"\\\\", b"") if b"\\" in raw else raw
    pieces = split_strings(escaped)
    outside = b'"'.join(pieces[::2]).translate(None, b" \t\r\n")
    opened = check_json_counts(outside)
    check_json_depth(outside, opened, depth)
    if b"\\u0000" in escaped or (MANY_DIGITS in outside.translate(DIGITS_AS_ZERO) and LONG_INTEGER.search(outside)):
        return JSON_UNDECIDED
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return JSON_UNDECIDED
    if count_member_names(value, opened) != outside.count(b":"):
        return JSON_UNDECIDED
    if len(raw) > JSON_STRING_LIMIT and may_be_too_long(raw, pieces):
        check_json_strings(value)
    return value


def may_be_too_long(raw: bytes, pieces: list[bytes]) -> bool:
    """Whether the longest string may be over the limit, if all escapes that were taken out had stood in it."""
    escapes = len(raw) - sum(map(len, pieces)) - (len(pieces) - 1)
    return max(map(len, pieces)) + escapes > JSON_STRING_LIMIT


def split_strings(escaped: bytes) -> list[bytes]:
    """What stands outside the strings and inside them, in turns. A string without an end goes to the end.

    `escaped`: the JSON without its escaped backslashes. All of it is done by whole-buffer operations: no step is taken per byte in Python.
    """
    text = escaped.replace(b'\\"', b"") if b"\\" in escaped else escaped
    if text.count(b'"') > JSON_QUOTES_LIMIT:
        raise too_many_json_values()
    return text.split(b'"')


def check_json_counts(outside: bytes) -> int:
    """How many arrays and objects there are, of not too many values. Every value but the first follows a comma or an opening bracket."""
    opened = outside.count(b"[") + outside.count(b"{")
    empty = outside.count(b"[]") + outside.count(b"{}")
    nodes = 1 + outside.count(b",") + opened - empty
    if nodes > JSON_VALUES_LIMIT or opened > JSON_VALUES_LIMIT:
        raise too_many_json_values()
    return opened


def too_many_json_values() -> BadRequest:
    """The refusal of an input with more values than anything needs."""
    return BadRequest(f"The body has more than {JSON_VALUES_LIMIT} values", code="invalid_json", hint="Send it in smaller batches")


def too_deep_json(levels: int = JSON_DEPTH_LIMIT) -> BadRequest:
    """The refusal of an input that a recursive reader should not see."""
    return BadRequest(f"The body is nested deeper than {levels} levels", code="invalid_json", hint="Flatten it")


def check_json_depth(outside: bytes, opened: int, most: int) -> None:
    """Count levels before a recursive parser sees them. Each round takes the innermost brackets away."""
    if opened <= most:
        return
    brackets = rest = outside.translate(None, ALL_BUT_BRACKETS)
    for _ in range(most):
        rest = rest.replace(b"[]", b"").replace(b"{}", b"")
        if not rest:
            return
    depth = 0  # they do not match, or there are more levels
    for bracket in brackets:
        depth += 1 if bracket in b"[{" else -1
        if depth > most:
            raise too_deep_json(most)


def count_member_names(root: Any, opened: int) -> int:
    """How many names all objects have together: fewer than colons when one stands twice."""
    if opened <= 1:
        return len(cast("dict[str, Any]", root)) if isinstance(root, dict) else 0
    names = 0
    containers: list[Any] = [root]
    while containers:
        value = containers.pop()
        if isinstance(value, dict):
            names += len(cast("dict[str, Any]", value))
            value = cast("Any", value).values()
        containers += [each for each in value if type(each) is dict or type(each) is list]
    return names


def check_json_strings(root: Any) -> None:
    """No string is longer than it may be; only a longer body can hold one."""
    values = [root]
    while values:
        value = values.pop()
        if type(value) is str:
            if 4 * len(value) > JSON_STRING_LIMIT:
                check_json_string(value)
        elif type(value) is dict:
            values += value.keys()
            values += value.values()
        elif type(value) is list:
            values += value


def parse_json_slowly(raw: bytes) -> Any:
    """The value, with every rule looked at as it is read, so that the refusal can name the place."""
    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=unique_members, parse_constant=refuse_constant, parse_int=bounded_integer)
    except UnicodeDecodeError as error:
        raise BadRequest(
            f"The body is not UTF-8: byte {error.start} cannot be decoded", code="invalid_json", hint="Send the JSON as UTF-8"
        ) from None
    except json.JSONDecodeError as error:
        raise BadRequest(
            f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}",
            code="invalid_json",
            hint="Send one JSON object with Content-Type: application/json",
        ) from None
    check_json_value(value)
    return value


def unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names are all different: with duplicates, two readers could see two different requests."""
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise BadRequest(
                    f"{name[:80]}: the name stands twice in one object", code="invalid_json", param=name[:80], hint="Send it once"
                )
            seen.add(name)
    return value


def refuse_constant(name: str) -> Any:
    """NaN and the infinities are not JSON (RFC 8259 section 6)."""
    raise BadRequest(f"{name} is not a JSON number", code="invalid_json", hint="Send a finite number")


def bounded_integer(digits: str) -> int:
    """Integers every JSON reader can hold (RFC 8259 section 6 names +-(2^53-1) as the interoperable range)."""
    if len(digits) > 17:
        raise BadRequest("An integer is outside +-(2^53-1)", code="invalid_json", hint="Send large identifiers as strings")
    return int(digits)


def parse_whole_numbers(raw: bytes) -> Any:
    """The value, with 5.0 as the integer 5: JSON knows one kind of number, and some clients write every one of them so."""
    return json.loads(raw, parse_float=whole_if_exact)


def whole_if_exact(digits: str) -> int | float:
    value = float(digits)
    return int(value) if value.is_integer() and abs(value) <= JSON_INTEGER_LIMIT else value


def check_json_value(root: Any) -> None:
    """Walk the value once: finite numbers, integer range, node count, clean strings, depth."""
    stack: list[tuple[Any, int]] = [(root, 1)]
    nodes = 0
    while stack:
        value, depth = stack.pop()
        nodes += 1
        if nodes > JSON_VALUES_LIMIT:
            raise too_many_json_values()
        kind = cast(Any, type(value))
        if kind is str:
            check_json_string(value)
        elif kind is dict:
            if depth > JSON_DEPTH_LIMIT:
                raise too_deep_json()
            for name, item in value.items():
                check_json_string(name)
                stack.append((item, depth + 1))
        elif kind is list:
            if depth > JSON_DEPTH_LIMIT:
                raise too_deep_json()
            stack.extend([(item, depth + 1) for item in value])
        elif kind is int:
            if not -JSON_INTEGER_LIMIT <= value <= JSON_INTEGER_LIMIT:
                raise BadRequest("An integer is outside +-(2^53-1)", code="invalid_json", hint="Send large identifiers as strings")
        elif kind is float and not math.isfinite(value):
            raise BadRequest("A number is too large to hold", code="invalid_json", hint="Send a finite number")


def check_json_string(value: str) -> None:
    """Short enough, no NUL (databases cut or refuse it), no lone surrogate (it cannot be written back as UTF-8)."""
    if value.isascii():
        if len(value) > JSON_STRING_LIMIT:
            raise BadRequest(f"A string is longer than {JSON_STRING_LIMIT} bytes", code="invalid_json", hint="Shorten it")
        if "\x00" in value:
            raise BadRequest("A string holds a NUL character", code="invalid_json", hint="Remove it")
        return
    try:
        encoded = value.encode()
    except UnicodeEncodeError:
        raise BadRequest("A string holds half of a surrogate pair", code="invalid_json", hint="Send whole characters") from None
    if len(encoded) > JSON_STRING_LIMIT or b"\x00" in encoded:
        raise BadRequest(
            f"A string is longer than {JSON_STRING_LIMIT} bytes or holds a NUL character", code="invalid_json", hint="Shorten or clean it"
        )
