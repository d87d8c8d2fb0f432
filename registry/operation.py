"""The declaration: one decorated handler is one operation, and nothing else names it."""

import inspect
import types
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from enum import IntFlag, StrEnum
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Concatenate, Generic, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

from pydantic import AliasChoices, BaseModel, ConfigDict, field_validator
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from typing_extensions import TypedDict, Unpack

from registry.caller import Caller, Money, Role
from registry.challenge import Challenge
from registry.errors import ProviderError, Refusal
from registry.versions import Versioned


class Secret:
    """Marks a field, in its Annotated, that holds a credential: no command line is to hold it, and no refusal repeats it."""


class Input(BaseModel):
    """One flat model serves all doors: unknown fields are refused, values keep the JSON type they came with."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True, frozen=True, use_attribute_docstrings=False)

    null_clears: ClassVar[frozenset[str]] = frozenset()
    """The optional fields whose null clears what is set, where leaving them out keeps it. Everywhere else null is absent."""

    set_later: ClassVar[Mapping[str, str]] = types.MappingProxyType({})
    """Fields that are unknown here, with the operation that sets them once what is made here exists."""

    @field_validator("starting_after", mode="before", check_fields=False)
    @classmethod
    def without_empty_cursor(cls, cursor: object) -> object:
        """An empty cursor is none: it is what a loop over pages has before the first one."""
        return None if cursor == "" else cursor

    @property
    def removed(self) -> Sequence[str]:
        """The fields of this input that are to be cleared: a call that clears one is another call than one that leaves it out."""
        return sorted(name for name in self.null_clears & self.model_fields_set if getattr(self, name) is None)


class CamelInput(Input):
    """Fields in the upstream's camelCase; snake_case is taken too, and both spellings of one field are refused."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True)


class FieldRule(ValueError):
    """A rule about several fields is broken; names the one to change first, and how."""

    def __init__(self, message: str, *, param: str, hint: str) -> None:
        super().__init__(message)
        self.param = param
        self.hint = hint


class Nothing(Input):
    """An operation that takes no input."""


@dataclass(frozen=True, slots=True)
class Document:
    """An answer that is not JSON: a picture, a PDF, a page."""

    content: bytes
    media_type: str
    headers: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class StreamedAnswer:
    """A JSON answer in pieces: bytes that come from elsewhere and are handed on as they are, or rows that are read as they are sent.

    Nothing of it is given before the other side has said that it succeeded. Whoever holds it closes `pieces`.
    `size` is about how many bytes there will be; 0 where nobody knows.
    """

    pieces: AsyncGenerator[bytes]
    media_type: str = "application/json"
    size: int = 0


@dataclass(frozen=True, slots=True)
class EventStream(StreamedAnswer):
    """Server-sent events, each piece one of them: made while they are read, and ended at once when their reader hangs up."""

    media_type: str = "text/event-stream"


def shown_field_name(name: str, info: FieldInfo) -> str:
    """The one name of a field that documentation and refusals use."""
    return info.alias or name


@lru_cache(maxsize=1024)
def field_spellings(model: type[BaseModel]) -> dict[str, str]:
    """Every name that is taken, with the field's own name in the model."""
    found: dict[str, str] = {}
    for name, info in model.model_fields.items():
        words = [shown_field_name(name, info)]
        if isinstance(info.validation_alias, AliasChoices):
            words += [str(choice) for choice in info.validation_alias.choices if isinstance(choice, str)]
        if model.model_config.get("validate_by_name"):
            words.append(name)
        found.update(dict.fromkeys(words, name))
    return found


class Scope(IntFlag):
    """What an operation asks of its caller. NONE asks for nothing; ANY is a write that every tier may make."""

    NONE = 0
    READ = 1
    ANY = 2
    WRITE = 4
    ADMIN = 8


P = TypeVar("P", bound=Input)

R = TypeVar("R")

BODY_LIMIT = 256 * 1024

OPEN_BODY_LIMIT = 8 * 1024
"""Of an operation that anybody may call: its few short fields need no more, even if every character of them is escaped."""


class SpendKind(StrEnum):
    """What a call makes due, where no function works it out."""

    NOTHING = "nothing"
    """No money, whatever the input."""
    OPEN = "open"
    """Nobody can say before: it opens a way for money to be made due later, or by others."""


class Due(NamedTuple):
    """What a call makes due, at most: each amount in its currency, and how many lines leave the stock.

    `largest`: of a call that stands for many, what one of them makes due at most; None: the call stands for itself.
    """

    money: tuple[Money, ...] = ()
    lines: int = 0
    largest: tuple[Money, ...] | None = None


NOTHING_DUE = Due()
Spends = SpendKind | Callable[..., Awaitable[Due | SpendKind]]
"""A kind, or a function of context, input and what access returned, as the handler gets them. It may wait for the network, and it gives
OPEN where nobody can say this time."""


class Auth(StrEnum):
    """Which credential an operation takes."""

    BEARER = "bearer"
    SESSION = "session"
    INTERNAL = "internal"
    STOREFRONT = "storefront"
    STOREFRONT_OPEN = "storefront?"
    PUBLIC = "public"
    SIGNATURE = "signature"
    BRIDGE = "bridge"


@dataclass(frozen=True, slots=True)
class Once:
    """How an operation treats the Idempotency-Key header.

    `shown`: a tool's definition names an optional key too, because a call that is repeated without one has a second effect.
    """

    required: bool = False
    forever: bool = False
    alias: str | None = None
    shown: bool = False

    @property
    def header(self) -> str:
        return self.alias or "Idempotency-Key"


OPTIONAL_KEY = Once()

FINAL_FIELD = "irreversible"
"""The field by which a call says that it cannot be undone, where other calls of its operation can."""

Card = Literal["confirmation", "line", "install"]
"""What a host that shows cards draws beside a tool's result."""


@dataclass(frozen=True, slots=True)
class AuthorityChange:
    """An operation that changes who may act for an organisation: it invites, gives or takes a role, makes or ends a credential.

    A restricted credential (`Caller.restricted`) is refused there, or whoever holds it would soon hold another one. Two things it may do.
    `itself`: the field of the input that names a credential; it may name its own. `narrower`: what the operation makes can do no more
    than the caller and ends with it, so everybody may make one.
    """

    itself: str | None = None
    narrower: bool = False


@dataclass(frozen=True, slots=True)
class Example:
    """One call as a user would make it, and what comes back."""

    title: str
    input: Mapping[str, Any]
    answer: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Operation(Generic[P, R]):
    """Everything the doors, the pipeline and the documentation know about one operation."""

    id: str
    method: str
    path: str
    handler: Callable[..., Awaitable[R]]
    params: type[P]
    result: Any
    forms: tuple[str, ...]
    """Media types that an answer in JSON can have instead, when it is asked for so."""
    summary: str
    description: str
    module: str
    title: str
    scope: Scope = Scope.READ
    role: Role | None = None
    authority: AuthorityChange | None = None
    auth: Auth = Auth.BEARER
    once: Once | None = None
    confirm: bool = False
    replaces: str | None = None
    confirms_some: bool = False
    upstream: bool = False
    processor: bool = False
    reaches_out: bool = False
    moves: bool = False
    organisation: bool = True
    charged: bool = True
    limited: bool = True
    enumeration_guarded: bool = False
    bounded: bool = False
    status: int = 200
    also: int | None = None
    tool: bool = True
    operator: bool = False
    access: Callable[..., Awaitable[Any]] | None = None
    challenge: Callable[..., Awaitable[Challenge]] | None = None
    proof: Callable[..., Awaitable[Caller]] | None = None
    raises: tuple[type[Refusal], ...] = ()
    examples: tuple[Example, ...] = ()
    body_limit: int = 0
    tool_defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    spends: Spends | None = None
    """None: nothing, for what only reads; of anything else it is not known, which counts as OPEN."""
    irreversible: bool = False
    waits: bool = True
    card: Card | None = None
    draws: bool = False
    """A call of it may take a line from the stock."""
    resumes: bool = False
    """A stream of events that goes on behind the one that the header Last-Event-ID names."""
    versioned: Versioned | None = None
    """What it changes or shows has a version: its answer has an ETag, and If-Match is taken. Of our own store alone."""

    read_only: bool = field(init=False)
    """Changes nothing: a read scope, or a GET, whoever may make it."""
    takes_body: bool = field(init=False)
    """Fields may come as a body over HTTP."""
    confirmable: bool = field(init=False)
    """Takes a confirm token: every call asks for one, or those do that would replace what is live."""
    approvable: bool = field(init=False)
    """A credential can be held to wait for a person before it does this."""
    destructive: bool = field(init=False)
    """May undo or overwrite what is there."""
    provided: bool = field(init=False)
    """Asks an outside system: what it did is committed before, and what came of it afterwards."""
    repeatable: bool = field(init=False)
    """The same call again has no further effect: it reads, has a key, or sets what is there to what it says."""
    open_world: bool = field(init=False)
    """Some calls of it reach a system that is not ours: the charging system, the payment processor, a model, a receiver of events."""
    public: bool = field(init=False)
    """May be called without any credential."""

    def __post_init__(self) -> None:
        read_only, provided = self.scope is Scope.READ or self.method == "GET", self.upstream or self.processor
        if self.versioned is not None and provided and not read_only:
            raise TypeError(f"{self.id}: what an outside system holds has no version that one transaction compares and changes")
        confirmable, once = self.confirm or self.confirms_some or self.replaces is not None, self.once
        sets = self.method in ("PUT", "PATCH", "DELETE") and not (once is not None and once.shown)  # a balance is raised with PUT
        derived = {
            "read_only": read_only,
            "takes_body": self.method not in ("GET", "DELETE"),
            "confirmable": confirmable,
            "approvable": not read_only and self.auth in (Auth.BEARER, Auth.SESSION) and self.waits,
            "destructive": confirmable or self.method == "DELETE",
            "provided": provided,
            "repeatable": read_only or (once is not None and once.required) or sets,
            "open_world": provided or self.reaches_out or any(issubclass(each, ProviderError) for each in self.raises),
            "public": self.auth is Auth.PUBLIC,
        }
        for name, fact in derived.items():
            object.__setattr__(self, name, fact)


Handler = Callable[Concatenate[Any, P, ...], Awaitable[R]]


class OperationOptions(TypedDict, total=False):
    """What a declaration may say beside method and path; what it leaves out is as in Operation.

    `upstream`: every call of it asks the charging system; `processor`: the payment processor. An operation that only some calls of
    reach one says neither, and stages those calls.
    `reaches_out`: some calls of it ask somebody outside, although it says neither and raises nothing of theirs: it does without an answer,
    or the answer comes later.
    `role`: what the caller must be in the organisation, on any tier.
    `replaces`: what of an organisation some calls of it may replace while it is live. Such a call takes the role admin and a confirm
    token; its access step finds out that it is one, and says so by `ctx.confirm_replacement`. All others are made at once, by anybody.
    `confirms_some`: some calls ask for a confirm token, whoever makes them; the access step finds out which.
    `authority`: it changes who may act for the organisation, which no restricted credential does.
    `enumeration_guarded`: knowing an id may be all that lets somebody in, so what is not found is counted by address.
    `bounded`: it is about many lines, and holds what it shows, counts and sorts to the lines and accounts that the credential may see
    (`ctx.row_bounds()`); so credentials that are restricted to some may call it.
    `challenge`: what this call would destroy or spend, for whoever confirms or approves it; it is called like the handler, changes nothing,
    and asks an outside system two times at most.
    `also` is another status of success, with the same body: nothing new was made.
    `body_limit`: bytes; without one, it depends on whether the caller needs a credential.
    `tool_defaults` are the values of a tool call that names none: a model's context is small.
    `spends`: what a call makes due, of the organisation's money or income. `irreversible`: no later call undoes what it did.
    `waits`: a credential may have to wait for an approval of it. False: it is how approvals are given, plans only, or stops what was begun.
    `card`: what a host draws of its results; without one, a call that may destroy or spend something is drawn as a question.
    `resumes`: its stream goes on behind the event that the header Last-Event-ID names.
    `versioned`: what it changes or shows has a version, which its answer tells as ETag and If-Match asks for. The comparison, the write
    and the new version are one transaction; only what is in our own store can have one.
    """

    scope: Scope
    role: Role | None
    authority: AuthorityChange | None
    auth: Auth
    once: Once | None
    confirm: bool
    replaces: str | None
    confirms_some: bool
    upstream: bool
    processor: bool
    reaches_out: bool
    moves: bool
    organisation: bool
    charged: bool
    limited: bool
    enumeration_guarded: bool
    bounded: bool
    status: int
    also: int | None
    tool: bool
    operator: bool
    title: str | None
    access: Callable[..., Awaitable[Any]] | None
    challenge: Callable[..., Awaitable[Challenge]] | None
    proof: Callable[..., Awaitable[Caller]] | None
    raises: Iterable[type[Refusal]]
    examples: Iterable[Example]
    body_limit: int | None
    tool_defaults: Mapping[str, Any]
    spends: Spends
    irreversible: bool
    waits: bool
    card: Card | None
    draws: bool
    resumes: bool
    versioned: Versioned | None


OPERATION_DEFAULTS = {each.name: each.default for each in fields(Operation) if each.default is not MISSING}


def operation(method: str, path: str, **options: Unpack[OperationOptions]) -> Callable[[Handler[P, R]], Operation[P, R]]:
    """Turn a handler into a declared operation. It registers nothing: a Toolset gathers what its modules hold."""
    declared: dict[str, Any] = {**OPERATION_DEFAULTS, **options}
    auth: Auth = declared["auth"]
    bearer = auth in (Auth.BEARER, Auth.SESSION)
    writes = declared["scope"] not in (Scope.READ, Scope.NONE) and method != "GET"
    declared |= {
        "once": declared["once"] or (OPTIONAL_KEY if writes and bearer else None),
        "organisation": declared["organisation"] and bearer,
        "charged": declared["charged"] and bearer,
        "body_limit": declared["body_limit"] or (OPEN_BODY_LIMIT if auth in (Auth.PUBLIC, Auth.STOREFRONT_OPEN) else BODY_LIMIT),
        "tool": declared["tool"] and auth is Auth.BEARER,
        "raises": tuple(declared["raises"]),
        "examples": tuple(declared["examples"]),
    }

    def of(handler: Handler[P, R]) -> Operation[P, R]:
        return declare_operation(handler, method=method, path=path, **declared)

    return of


def declare_operation(handler: Handler[P, R], *, title: str | None = None, **declared: Any) -> Operation[P, R]:
    """The operation of a handler: what the decorator said, and what the function itself says."""
    name, documentation, params, result = handler_signature(handler)
    result, forms = without_forms(without_streams(result))
    return Operation(
        id=name,
        handler=handler,
        params=params,
        result=result,
        forms=forms,
        summary=documentation.partition("\n")[0],
        description=documentation,
        module=handler.__module__,
        title=title or name.replace("_", " ").capitalize(),
        **declared,
    )


def without_streams(result: Any) -> Any:
    """What the answer says, whether or not its bytes are only handed on."""
    members = tuple(member for member in get_args(result) if member not in (StreamedAnswer, EventStream))
    return Union[members] if get_origin(result) in (Union, types.UnionType) else result  # noqa: UP007  # the members are data here


def without_forms(result: Any) -> tuple[Any, tuple[str, ...]]:
    """The answer in JSON, and the media types of the documents that it may be instead. An answer that is a document always is itself."""
    members = get_args(result) if get_origin(result) in (Union, types.UnionType) else ()
    document_members = [member for member in members if get_origin(member) is Annotated and get_args(member)[0] is Document]
    if not document_members or len(document_members) == len(members):
        return result, ()
    json_members = tuple(member for member in members if member not in document_members)
    return Union[json_members], tuple(word for member in document_members for word in get_args(member)[1:])  # noqa: UP007  # the members are data here


def handler_signature(handler: Callable[..., Any]) -> tuple[str, str, Any, Any]:
    """Name, documentation, input model and answer type, read from the function itself."""
    name = handler.__name__
    documentation = inspect.getdoc(handler)
    if not documentation:
        raise TypeError(f"{name}: a handler's docstring is its public documentation; write one")
    if len(documentation.partition("\n")[0]) > 80:
        raise TypeError(f"{name}: the first line of the docstring is the tool summary and has at most 80 characters")
    hints = inspect.get_annotations(handler, eval_str=True)
    parameters = [parameter for parameter in hints if parameter != "return"]
    if len(parameters) < 2 or "return" not in hints:
        raise TypeError(f"{name}: a handler takes (ctx, params) or (ctx, params, what access returned) and declares its answer")
    params = hints[parameters[1]]
    if not (isinstance(params, type) and issubclass(params, Input)):
        raise TypeError(f"{name}: the second parameter's type must be an Input model")
    return name, documentation, params, hints["return"]
