"""What a door hands to the pipeline, and what it gets back to render."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal

from registry.caller import Caller
from registry.errors import Refusal
from registry.operation import Operation, StreamedAnswer
from registry.versions import IfMatch

Surface = Literal["http", "mcp", "cli", "web", "assistant", "schedule", "change"]
"""Through which door: `web` are the service's own pages, `assistant` the model that answers a chat, `schedule` a report that is due,
`change` a row of a change set or a call that a person has approved."""
Progress = Callable[[float, float | None, str | None], Awaitable[None]]


async def no_body(limit: int) -> bytes:
    """A call without a body."""
    del limit
    return b""


async def no_progress(done: float, total: float | None, message: str | None) -> None:
    """Nobody asked to be told."""


class CallState(IntEnum):
    """How far a call has come; each state follows the ones before it, and not every call passes through all of them."""

    RECEIVED = 0
    """Nothing about it is known to be true."""
    VALID = 1
    """Its caller may make it, and its input is right; what is refused from here on is refused for another reason."""
    STAGED = 2
    """It will send one thing to a provider, by `Context.dispatch`; until then nothing has been done."""
    SETTLING = 3
    """The one commit of a call that asks no provider has begun."""
    DISPATCHED = 4
    """What it sends to a provider is committed: from here on the provider may have it."""
    RELEASED = 5
    """Its key is free again, because it had no effect."""
    RECORDED = 6
    """Its answer and its audit row are stored, or nobody can say any more what they are."""


@dataclass(frozen=True, slots=True)
class QuotaUsage:
    """Where the organisation stands in its daily quota; `reset` is Unix seconds."""

    limit: int
    used: int
    reset: int


@dataclass(frozen=True, slots=True)
class Mandate:
    """A decision that a call was waiting for, made before: by the confirmation or the approval of `id`, a change set or an approval.

    `reserved`: the limits of the credential were charged when it was decided, and are not charged again. `terms`: the digest of what was
    approved, where that was this one call; it is refused when it would do something else now.
    """

    id: str
    reserved: bool = False
    terms: bytes = b""


@dataclass(slots=True)
class Call:
    """One call of one operation, before anything about it is known to be true.

    `caller` is set only by a door that authenticated already (MCP after its own 401 check) or that has no
    network in front of it (stdio, the command line); HTTP always hands over the credential instead.
    """

    operation: Operation[Any, Any]
    surface: Surface
    request_id: str
    credential: str | None = None
    misplaced: str = ""
    """Where a credential was sent that is not read there, when none was sent where it is."""
    caller: Caller | None = None
    path: Mapping[str, str] = field(default_factory=dict[str, str])
    query: str = ""
    read_body: Callable[[int], Awaitable[bytes]] = no_body
    arguments: Mapping[str, Any] | None = None
    idempotency_key: str | None = None
    confirm_token: str | None = None
    client: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    progress: Progress = no_progress
    prefers_page: bool = False
    """Somebody reads the answer in a browser: an operation that has a page answers with it unless it is asked otherwise."""
    message_size: int = 0
    """Bytes of the MCP message that it came in, where the door has not charged them already."""
    prepaid_by_parent: bool = False
    """Another call, which was charged, makes this one: it costs nothing more."""
    mandate: Mandate | None = None
    """Who has agreed to this call before it was made: it asks for neither a confirmation nor an approval."""
    inquiry: bool = False
    """Asks what a person would approve: it goes as far as the question, does nothing and stores nothing."""
    reason: str | None = None
    """Why the call is made, in the asker's words, for whoever approves it."""
    last_event_id: str | None = None
    """Of a stream that is read again: the last event that its reader got."""
    if_match_text: str | None = None
    """The header If-Match as it came; it is read once it is known who calls."""
    if_match: IfMatch | None = None
    """Only a versioned operation takes it: the version that what it is about must have."""
    names_free_text: bool = False
    """The door tells its client where the answer holds text that people or other systems wrote."""
    # Filled in by the pipeline as it goes, so that a refusal can be recorded with what was known.
    identified: Caller | None = None
    started: float = 0.0
    usage: QuotaUsage | None = None
    former_keys: tuple[str, ...] = ()
    """The spellings of the idempotency key that are no key of their own any more, unless one was stored as such long ago."""
    raw: bytes | None = None
    evidence: object = field(default=None, repr=False)
    """What the operation's proof has verified and read of the body, for the handler."""
    state: CallState = CallState.RECEIVED

    @property
    def draws_page(self) -> bool:
        """Whether it reads a part of a page that somebody signed in looks at: the page is limited and recorded, its parts are not."""
        return self.prepaid_by_parent and self.surface == "web"

    @property
    def takes_json_alone(self) -> bool:
        """Whether its door hands on no other kind of answer: a model reads results of tools as JSON."""
        return self.surface in ("mcp", "assistant")

    @property
    def has_no_body(self) -> bool:
        """Over HTTP a body was looked for, and none came; `{}` is one."""
        return self.raw == b""

    @property
    def size(self) -> int:
        """Bytes that were read for it."""
        return self.message_size if self.raw is None else len(self.raw)

    async def body(self) -> bytes:
        """The body as it came: read once, when it is first asked for."""
        if self.raw is None:
            self.raw = await self.read_body(self.operation.body_limit)
        return self.raw


@dataclass(slots=True)
class Reply:
    """The answer: bytes that every door passes on unchanged, or the refusal it has to render."""

    status: int
    body: bytes
    media_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict[str, str])
    refusal: Refusal | None = None
    next_cursor: str | None = None
    note: str | None = None
    """What a reader should know about a list and its rows do not say: how many there are, how to see more."""
    stream: StreamedAnswer | None = None
    """The body when it is not `body`: pieces as they arrive from the other side."""
    encoded_here: bool = True
    """A body in JSON was written by `encode_answer`, so that decoding it and encoding it again changes nothing."""
    free_text: tuple[str, ...] | None = None
    """Where the answer holds text that people or other systems wrote; None where nobody asked, or only the body tells."""
