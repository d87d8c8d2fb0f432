"""Conditional writes: the version of what an operation changes, and the condition that a call is made under (RFC 9110 section 13.1.1).

A version is an entity tag (section 8.8.3) of what is stored. It is strong, since section 13.1.1 compares strongly: two states of an object
never share one, however short a time lies between them. It is a digest of the state itself, and so needs no counter beside the row.

Choice: it is of what the operation can change, not of each byte of an answer. What an answer shows beside it, such as how a plan differs
from its template now, changes by itself, and a caller who sends a change has no quarrel with that. So no answer is ever 304 by it.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, NamedTuple

import orjson

from registry.clock import rfc3339_utc
from registry.errors import BadRequest, PreconditionFailed
from registry.redaction import readable_text

IF_MATCH = "If-Match"
ENTITY_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')
"""Section 8.8.3: an opaque tag in double quotes, without spaces, and W/ before a weak one."""
TAG_DIGITS = 32
CLIPPED_NAME = 80
CLIPPED_TAG = 60


class ObjectVersion(NamedTuple):
    """What is stored of an object that an operation changes.

    `state`: all that the operation can change, as JSON; named tuples count as lists. `changed`: when the row says that it was changed,
    Unix seconds; None: it says nothing. `alone`: the organisation has one such object, so that whoever wrote one last wrote this one.
    `named`: what the audit log's `change` of a change of this object begins with. `principal`: the only person who may change it.
    """

    state: object
    changed: int | None = None
    alone: bool = False
    named: str = ""
    principal: str = ""


@dataclass(frozen=True, slots=True)
class Versioned:
    """That an operation changes, or shows, something of our own store that has a version.

    `what`: its name in a sentence. `read`: the ObjectVersion of what a call is about, or None where there is nothing yet or the schema
    cannot hold it; called with a connection, the context, the input, and `hold`: that a transaction goes on to change it, so that nobody
    else does meanwhile. `reader`: the operation that shows it. `changed_by`: the operations that change it.
    """

    what: str
    read: Callable[[Any, Any, Any, bool], ObjectVersion | None]
    reader: str
    changed_by: tuple[str, ...]


class IfMatch(NamedTuple):
    """The condition of a call: the object has one of these `tags`, or, with `anything`, there is one at all. `weak`: a weak tag came."""

    tags: frozenset[str]
    anything: bool = False
    weak: bool = False

    def holds(self, tag: str | None) -> bool:
        """Whether it holds of an object with the entity `tag`; None: there is no such object, of which no condition holds."""
        return tag is not None and (self.anything or tag in self.tags)


class ChangeAuthor(NamedTuple):
    """Who changed an object, as the audit log of the organisation names them, and when, in Unix seconds."""

    at: float
    principal: str
    name: str | None
    key_id: str


class ChangeLookup(NamedTuple):
    """Which change the audit log is asked for: the last one by these `operations`, of the version's own time where it has one."""

    organisation: str
    operations: tuple[str, ...]
    version: ObjectVersion


def entity_tag(what: str, version: ObjectVersion) -> str:
    """The strong entity tag of an object, with its quotes. `what` keeps objects of two kinds apart."""
    state = orjson.dumps([what, version.state], default=list, option=orjson.OPT_SORT_KEYS)
    return f'"{hashlib.sha256(state).hexdigest()[:TAG_DIGITS]}"'


def parse_if_match(value: str) -> IfMatch:
    """The header If-Match: `*`, or entity tags between commas. Raises BadRequest for anything else.

    RFC 9110 section 13.1.1: a list is compared strongly, so that a weak tag is well formed and never matches. Section 5.6.1.2: empty
    elements of a list are read over, and several lines of the header are one list.
    """
    if value.strip(" \t") == "*":
        return IfMatch(frozenset(), anything=True)
    tags, place = list[str](), 0
    while place < len(value):
        found = ENTITY_TAG.match(value, place)
        if found is not None:
            tags.append(found[0])
            place = found.end()
            rest = value[place:].lstrip(" \t")
            if rest and rest[0] != ",":
                raise bad_if_match(value)
        elif value[place] not in " \t,":
            raise bad_if_match(value)
        else:
            place += 1
    if not tags:
        raise bad_if_match(value)
    strong = frozenset(tag for tag in tags if not tag.startswith("W/"))
    return IfMatch(strong, weak=len(strong) < len(set(tags)))


def bad_if_match(value: str) -> BadRequest:
    shown = readable_text(value)[:CLIPPED_TAG]
    return BadRequest(
        f"{IF_MATCH}: {shown!a} is neither an entity tag nor several between commas, nor * alone",
        param=IF_MATCH,
        hint='Send what the header ETag said, with its quotes, for example If-Match: "5f3c0d"; * asks only that there is something',
    )


def required_version(operation: Any, text: str) -> IfMatch | None:
    """What the header If-Match with this `text` asks of a call of `operation`. Raises BadRequest where it cannot be read, or kept.

    Choice: a read of what has no version goes on: it changes nothing, and programs send the same headers with all their requests.
    """
    if operation.versioned is not None:
        return parse_if_match(text)
    if operation.read_only:
        return None
    raise BadRequest(
        f"{IF_MATCH}: {operation.id} changes nothing that has a version here, so the condition cannot be kept; nothing was done",
        param=IF_MATCH,
        hint="Leave it out. Operations that take it answer the header ETag",
    )


def conditional_write(
    write: Callable[..., Any], versioned: Versioned, context: Any, params: Any, tell: Callable[[str | None], None]
) -> Callable[..., Any]:
    """`write` with the comparison before it and the new version after it, all in its transaction. `tell` gets the new entity tag.

    Where there is nothing yet, `write` goes first: it may refuse that in its own words.
    """
    wanted: IfMatch | None = context.call.if_match

    @wraps(write)
    def run(connection: Any, **arguments: Any) -> Any:
        before = versioned.read(connection, context, params, True)
        tag = None if before is None else entity_tag(versioned.what, before)
        refused = wanted is not None and not wanted.holds(tag)
        if refused and before is not None:
            raise version_differs(versioned, before, wanted)
        result = write(connection, **arguments)
        if refused:
            raise version_differs(versioned, None, wanted)
        tell(version_tag(connection, versioned, context, params))
        return result

    return run


def concluding_write(
    write: Callable[..., Any], versioned: Versioned, context: Any, params: Any, tell: Callable[[str | None], None]
) -> Callable[..., Any]:
    """`write`, and after it the new version; for the second commit of a call whose condition was compared in the first."""

    @wraps(write)
    def run(connection: Any, **arguments: Any) -> Any:
        result = write(connection, **arguments)
        tell(version_tag(connection, versioned, context, params))
        return result

    return run


def version_tag(connection: Any, versioned: Versioned, context: Any, params: Any) -> str | None:
    """The entity tag of what a call is about, as it is stored now; None where there is nothing."""
    found = versioned.read(connection, context, params, False)
    return None if found is None else entity_tag(versioned.what, found)


def version_differs(versioned: Versioned, now: ObjectVersion | None, wanted: IfMatch | None) -> PreconditionFailed:
    """The refusal, before it is known who changed the object to what it is `now`; None: there is none."""
    if now is None:
        text = f"There is no {versioned.what} yet, so {IF_MATCH} names no version of it; nothing was changed"
        return PreconditionFailed(text, hint=f"Leave {IF_MATCH} out to make it", version=None)
    hint = f"Read it again with {versioned.reader}, see whether your change still fits, and send it with the ETag of that answer"
    if wanted is not None and wanted.weak:
        hint = f"Send the ETag as it came, without W/: a weak tag never matches (RFC 9110 section 8.8.3.2). {hint}"
    return PreconditionFailed(differing_text(versioned.what, now.changed, None), hint=hint, version=now)


def differing_text(what: str, changed: float | None, author: ChangeAuthor | None) -> str:
    """The sentence of the refusal: when the object was changed and by whom, as far as that is known."""
    when = "" if changed is None else f" at {rfc3339_utc(changed)}"
    who = "" if author is None else f" by {author_name(author)}" + (f" with {author.key_id}" if author.key_id else "")
    verb = f"was changed{when}{who}" if when or who else "has changed"
    return f"The {what} {verb}, after the version that {IF_MATCH} names; nothing was changed now"


def author_name(author: ChangeAuthor) -> str:
    return readable_text(author.name)[:CLIPPED_NAME] if author.name else author.principal


def name_author(refusal: PreconditionFailed, what: str, author: ChangeAuthor | None) -> None:
    """Completes the refusal with who changed the object, where the audit log says so."""
    version = refusal.version
    if not isinstance(version, ObjectVersion):
        return
    changed = version.changed if version.changed is not None or author is None else author.at
    refusal.message = differing_text(what, changed, author)
    refusal.args = (refusal.message,)
    facts: dict[str, object] = {} if changed is None else {"changed_at": rfc3339_utc(changed)}
    if author is not None:
        facts |= {"changed_by": author.principal, "changed_by_name": author.name and readable_text(author.name)[:CLIPPED_NAME]}
        facts |= {"changed_with": author.key_id or None}
    refusal.own_fields = facts
