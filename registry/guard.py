"""JSON from outside: what is legal JSON and still not welcome (security.md 3.5 and 4.5)."""

import json
import math
import re
from typing import Any, cast

from registry.errors import BadRequest

DEPTH = 32
NODES = 20_000
STRING = 64 * 1024
INTEGER = 2**53 - 1
# The closing quote may be missing: a string without an end is passed over once, not tried again from each quote inside it.
STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


def parse(raw: bytes) -> Any:
    """The value, or BadRequest that says what is wrong with it."""
    check_depth(raw)
    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=unique, parse_constant=constant, parse_int=integer)
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
    check_value(value)
    return value


def check_depth(raw: bytes) -> None:
    """Count brackets outside strings before a recursive parser sees them."""
    if raw.count(b"[") + raw.count(b"{") <= DEPTH:
        return
    depth = 0
    for bracket in STRINGS.sub(b"", raw).translate(None, NO_BRACKETS):
        if bracket in b"[{":
            depth += 1
            if depth > DEPTH:
                raise BadRequest(f"The body is nested deeper than {DEPTH} levels", code="invalid_json", hint="Flatten it")
        else:
            depth -= 1


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
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


def constant(name: str) -> Any:
    """NaN and the infinities are not JSON (RFC 8259 section 6)."""
    raise BadRequest(f"{name} is not a JSON number", code="invalid_json", hint="Send a finite number")


def integer(digits: str) -> int:
    """Integers every JSON reader can hold (RFC 8259 section 6 names +-(2^53-1) as the interoperable range)."""
    if len(digits) > 17:
        raise BadRequest("An integer is outside +-(2^53-1)", code="invalid_json", hint="Send large identifiers as strings")
    return int(digits)


def with_whole_numbers(raw: bytes) -> Any:
    """The value, with 5.0 as the integer 5: JSON knows one kind of number, and some clients write every one of them so."""
    return json.loads(raw, parse_float=whole)


def whole(digits: str) -> int | float:
    """An integer where nothing is lost by it."""
    value = float(digits)
    return int(value) if value.is_integer() and abs(value) <= INTEGER else value


def check_value(root: Any) -> None:
    """Walk the value once: finite numbers, integer range, node count, clean strings, depth."""
    stack: list[tuple[Any, int]] = [(root, 1)]
    nodes = 0
    while stack:
        value, depth = stack.pop()
        nodes += 1
        if nodes > NODES:
            raise BadRequest(f"The body has more than {NODES} values", code="invalid_json", hint="Send it in smaller batches")
        kind = cast(Any, type(value))
        if kind is str:
            check_string(value)
        elif kind is dict:
            if depth > DEPTH:
                raise BadRequest(f"The body is nested deeper than {DEPTH} levels", code="invalid_json", hint="Flatten it")
            for name, item in value.items():
                check_string(name)
                stack.append((item, depth + 1))
        elif kind is list:
            if depth > DEPTH:
                raise BadRequest(f"The body is nested deeper than {DEPTH} levels", code="invalid_json", hint="Flatten it")
            stack.extend([(item, depth + 1) for item in value])
        elif kind is int:
            if not -INTEGER <= value <= INTEGER:
                raise BadRequest("An integer is outside +-(2^53-1)", code="invalid_json", hint="Send large identifiers as strings")
        elif kind is float and not math.isfinite(value):
            raise BadRequest("A number is too large to hold", code="invalid_json", hint="Send a finite number")


def check_string(value: str) -> None:
    """Short enough, no NUL (databases cut or refuse it), no lone surrogate (it cannot be written back as UTF-8)."""
    if value.isascii():
        if len(value) > STRING:
            raise BadRequest(f"A string is longer than {STRING} bytes", code="invalid_json", hint="Shorten it")
        if "\x00" in value:
            raise BadRequest("A string holds a NUL character", code="invalid_json", hint="Remove it")
        return
    try:
        encoded = value.encode()
    except UnicodeEncodeError:
        raise BadRequest("A string holds half of a surrogate pair", code="invalid_json", hint="Send whole characters") from None
    if len(encoded) > STRING or b"\x00" in encoded:
        raise BadRequest(
            f"A string is longer than {STRING} bytes or holds a NUL character", code="invalid_json", hint="Shorten or clean it"
        )
