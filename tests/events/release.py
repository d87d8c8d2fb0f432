"""What the last release promised of events, and what a change takes away: `python -m tests.events.release 1.1.0` renews it at a release.

Receivers read what was released: members and types of events are added, and none is removed or becomes something else.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import orjson
from typing_extensions import TypedDict

from operations.event_types.catalogue import EVENT_TYPES
from operations.event_types.declaration import AnyEventType
from transports.openapi.event_schemas import event_json_schema
from transports.openapi.schemas import OpenapiJson

RELEASED = Path(__file__).with_name("released_schemas.json")
UPPER, LOWER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems"), ("minimum", "exclusiveMinimum", "minLength", "minItems")
KEPT = ("format", "pattern")


class ReleasedType(TypedDict):
    """A type of events as it was released; `schema` is that of the whole event, without its words."""

    since: str
    version: int
    schema: OpenapiJson


class Released(TypedDict):
    """The types of a release by their names."""

    release: str
    types: dict[str, ReleasedType]


def version_number(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def read_released(path: Path = RELEASED) -> Released:
    return cast(Released, orjson.loads(path.read_bytes()))


def declared_types(event_types: Mapping[str, AnyEventType] = EVENT_TYPES) -> dict[str, ReleasedType]:
    return {
        name: {"since": t.since, "version": t.version, "schema": without_words(event_json_schema(t))} for name, t in event_types.items()
    }


def without_words(schema: OpenapiJson) -> OpenapiJson:
    """The schema without descriptions, which may be worded anew; a member of that name stays."""
    return {name: _shortened(value) for name, value in schema.items() if not (name == "description" and isinstance(value, str))}


def _shortened(value: object) -> object:
    if isinstance(value, dict):
        return without_words(cast(OpenapiJson, value))
    return [_shortened(each) for each in cast("list[object]", value)] if isinstance(value, list) else value


def broken_event_promises(released: Released, declared: Mapping[str, ReleasedType]) -> Iterator[str]:
    """What the release promised and the declarations no longer keep, a sentence each."""
    for name, before in released["types"].items():
        now = declared.get(name)
        if now is None:
            yield f"{name} is gone"
            continue
        if now["since"] != before["since"]:
            yield f"{name} is since {before['since']}, not {now['since']}"
        if now["version"] < before["version"]:
            yield f"{name} has version {before['version']}, not {now['version']}"
        yield from changes(before["schema"], now["schema"], name)
    for name in declared.keys() - released["types"].keys():
        if version_number(declared[name]["since"]) <= version_number(released["release"]):
            yield f"{name} is new, and not since {declared[name]['since']}: {released['release']} was released without it"


def changes(before: OpenapiJson, now: OpenapiJson, where: str) -> Iterator[str]:
    old, new = kinds(before), kinds(now)
    if old.keys() != new.keys():
        yield f"{where} was {' or '.join(old)}, and is {' or '.join(new)}"
    for kind in old.keys() & new.keys():
        yield from lost_values(old[kind], new[kind], where)
        yield from wider_bounds(old[kind], new[kind], where)
        yield from lost_members(old[kind], new[kind], where)
        for word in ("items", "additionalProperties"):
            if isinstance(old[kind].get(word), dict):
                yield from changes(old[kind][word], new[kind].get(word) or {}, f"{where}[]")


def kinds(schema: OpenapiJson) -> dict[str, OpenapiJson]:
    """What a value may be, by type; a second object is `object 2`."""
    found: dict[str, OpenapiJson] = {}
    for each in schema.get("anyOf", schema.get("oneOf", [schema])):
        kind = str(each.get("type", "anything"))
        number = sum(name.partition(" ")[0] == kind for name in found)
        found[kind if not number else f"{kind} {number + 1}"] = each
    return found


def lost_values(before: OpenapiJson, now: OpenapiJson, where: str) -> Iterator[str]:
    old, new = listed_values(before), listed_values(now)
    if old and not new:
        yield f"{where} was one of {old}, and is anything"
    yield from (f"{where} can no longer be {value}" for value in old if new and value not in new)


def listed_values(schema: OpenapiJson) -> list[object]:
    return [schema["const"]] if "const" in schema else schema.get("enum", [])


def wider_bounds(before: OpenapiJson, now: OpenapiJson, where: str) -> Iterator[str]:
    for word in (*UPPER, *LOWER):
        if word in before and (word not in now or (now[word] > before[word] if word in UPPER else now[word] < before[word])):
            yield f"{where}: {word} was {before[word]}, and is {now.get(word)}"
    yield from (
        f"{where}: {word} was {before[word]}, and is {now.get(word)}" for word in KEPT if before.get(word, now.get(word)) != now.get(word)
    )


def lost_members(before: OpenapiJson, now: OpenapiJson, where: str) -> Iterator[str]:
    old, new = before.get("properties", {}), now.get("properties", {})
    for name, member in old.items():
        if name not in new:
            yield f"{where}.{name} is gone"
            continue
        if name in before.get("required", []) and name not in now.get("required", []):
            yield f"{where}.{name} was always there, and may be missing"
        yield from changes(member, new[name], f"{where}.{name}")


def renew(release: str, path: Path = RELEASED, event_types: Mapping[str, AnyEventType] = EVENT_TYPES) -> list[str]:
    """Write the types of `release`; what breaks the promises of the one before is told instead, and nothing is written."""
    before, declared = read_released(path), declared_types(event_types)
    problems = list(broken_event_promises(before, declared))
    if version_number(release) < version_number(before["release"]):
        problems.append(f"{release} is older than {before['release']}, which is released")
    if not problems:
        types = {name: each for name, each in declared.items() if version_number(each["since"]) <= version_number(release)}
        made: Released = {"release": release, "types": types}
        path.write_bytes(orjson.dumps(made, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    return problems


def release_events(words: list[str]) -> int:
    if len(words) != 1 or not all(part.isdigit() for part in words[0].split(".")):
        sys.stderr.write("usage: python -m tests.events.release VERSION\n")
        return 2
    problems = renew(words[0])
    sys.stderr.writelines(f"{problem}\n" for problem in problems)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(release_events(sys.argv[1:]))
