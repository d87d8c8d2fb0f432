"""The service that a command calls: the local database in this process, where the operator is trusted, or a server elsewhere."""

import asyncio
import getpass
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Protocol, cast, get_args
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

import orjson
import typer

from clients.http import Outbound, OutboundFailed, OutboundLimits
from operations.catalogue import CATALOGUE
from registry.answer import EVENT_STREAM_SECONDS, answer_call, gather_reply
from registry.authentication import BRIDGE_CALLER
from registry.binding import Binding
from registry.call import Call, Reply
from registry.caller import ANONYMOUS_CALLER, Caller
from registry.catalogue import AnyOperation
from registry.clock import SystemClock
from registry.errors import StoreUnavailable
from registry.ids import SystemIds
from registry.operation import Auth, field_spellings
from storage.organisations import list_members, list_organisations
from transports.cli.render import EVENT_STREAM_TYPE, explain_refusal
from transports.cli.stored_logins import stored_token
from transports.cli.terminal import Failure, Unreachable, command_settings, progress_line, to_stderr, warn_of_argument
from transports.service import Service, build_service
from transports.settings import Settings

LOCAL_BASE_URL = "http://127.0.0.1:8000"
DatabaseOption = Annotated[Path | None, typer.Option("--data", help="Directory with the embedded database.")]


def report_fault(call: Call, error: BaseException) -> None:
    """Reports a fault of the service's own, without its message."""
    to_stderr(f"{call.request_id}: {type(error).__name__}")


@asynccontextmanager
async def open_local(settings: Settings, *, seed: bool = False, create: bool = False) -> AsyncGenerator[Service]:
    """The service without doors, started, and stopped when the block ends.

    A database that is missing is made only with `seed` (and demo data in it) or `create`; else it is a `Failure`, since a wrong directory
    is more likely.
    """
    database = (settings.data / "service.db").absolute()
    if settings.embedded and not (seed or create or database.exists()):
        raise Failure(f"there is no database at {database}; start the service there, or name its directory with --data or SERVICE_DATA")
    service = build_service(settings, LOCAL_BASE_URL, report=to_stderr, apart=True)
    await service.start(seed=seed)
    try:
        yield service
    finally:
        await service.stop()


async def local_caller(service: Service, organisation: str | None) -> Caller:
    """The admin of `organisation`, or of the only one. Raises Failure."""
    chosen = organisation or await only_organisation(service)
    if chosen is None:
        raise Failure("the database has no organisation yet; `reseller serve` on an empty one makes a demo organisation")
    members = await service.store.read(list_members, organisation=chosen)
    caller = await service.directory.member(members[0].person_id, chosen) if members else None
    if caller is None:
        raise Failure(f"--org: {chosen} is unknown or has no members")
    return caller


async def only_organisation(service: Service) -> str | None:
    """The id of the only organisation; None when there is none. Raises Failure when there are several."""
    known = await service.store.read(list_organisations)
    if len(known) > 1:
        names = ", ".join(f"{o.id} ({o.name})" for o in known)
        raise Failure(f"--org: name the organisation to act for; there are: {names}")
    return known[0].id if known else None


def is_simulated(operation: AnyOperation, settings: Settings) -> bool:
    """Whether the operation needs a simulation, of which every process has its own."""
    return (operation.upstream and not settings.ocs_url) or (operation.processor and settings.simulates_payments)


def refuse_simulated(operation: AnyOperation) -> None:
    """Raises Failure for a change: a simulated network or processor ends with its process. A read gets a warning."""
    what = "payment processor" if operation.processor else "network"
    where = f"the {what} is simulated, and this command would have one of its own"
    if not operation.read_only:
        raise Failure(f"{operation.id}: {where} that ends with it; call a running server with --url and --key")
    to_stderr(f"{where}: it shows nothing that was changed on a running server (--url and --key ask that one)")


@dataclass(frozen=True, slots=True)
class CommandCall:
    """A call as a command makes it, wherever it is answered."""

    operation: AnyOperation
    arguments: Mapping[str, object]
    idempotency_key: str | None = None
    confirm_token: str | None = None


async def call_locally(settings: Settings, wish: CommandCall, organisation: str | None) -> Reply:
    """One call through the pipeline of every door. Raises Failure."""
    operation = wish.operation
    if operation.id not in CATALOGUE.operations:
        raise Failure(f"{operation.id}: no such operation")
    if is_simulated(operation, settings):
        refuse_simulated(operation)
    async with open_local(settings) as service:
        return await ask_locally(service, wish, organisation)


async def ask_locally(service: Service, wish: CommandCall, organisation: str | None) -> Reply:
    operation = wish.operation
    caller = ANONYMOUS_CALLER if operation.public else BRIDGE_CALLER
    if not operation.public and operation.auth is not Auth.INTERNAL:
        caller = await local_caller(service, organisation)
    with progress_line() as progress:
        call = Call(
            operation=operation,
            surface="cli",
            request_id=service.ids.new("req_"),
            caller=caller,
            arguments=wish.arguments,
            idempotency_key=wish.idempotency_key,
            confirm_token=wish.confirm_token,
            progress=progress,
        )
        return await gather_reply(await answer_call(service.pipeline, call, report_fault), call.request_id)


ANSWER_PATIENCE_SECONDS = 150.0
"""Seconds: the server reads whole fleets for 100 of them, and lists their lines before."""
LARGEST_ANSWER = 64 * 1024 * 1024
NEXT_LINK = re.compile(r'<([^<>]*)>; rel="next"(?:; starting_after="([^"]*)")?')


async def call_remotely(url: str, key: str | None, wish: CommandCall) -> Reply:
    """One call over its own connection. Raises Unreachable. Waits for the network."""
    outbound = Outbound(OutboundLimits(total_seconds=answer_patience(wish.operation)))
    try:
        return await exchange_call(outbound, url, key, wish)
    finally:
        await outbound.aclose()


def answer_patience(operation: AnyOperation) -> float:
    """Seconds that the whole answer may take; an event stream ends by itself within what every door allows."""
    return EVENT_STREAM_SECONDS if EVENT_STREAM_TYPE in get_args(operation.result) else ANSWER_PATIENCE_SECONDS


async def exchange_call(outbound: Outbound, url: str, key: str | None, wish: CommandCall) -> Reply:
    """The same call as curl would make it. Raises Unreachable. Waits for the network."""
    operation, rest = wish.operation, dict(wish.arguments)
    binding, path = Binding(operation), operation.path
    for name in binding.path_names:
        path = path.replace("{" + name + "}", quote(query_text(take_path_value(operation, rest, name)), safe=""))
    headers = {"accept": "application/json"}
    key = key or (None if operation.public else await stored_token(url, SystemClock()))
    if key:
        headers["authorization"] = f"Bearer {key}"
    if wish.idempotency_key:
        headers[operation.once.header if operation.once else "Idempotency-Key"] = wish.idempotency_key
    if wish.confirm_token:
        headers["x-confirm-token"] = wish.confirm_token
    content = b""
    if binding.has_body:
        headers["content-type"], content = "application/json", orjson.dumps(rest)
    elif rest:
        path += "?" + urlencode({name: query_text(value) for name, value in rest.items() if value is not None})
    try:
        reply = await outbound.exchange(operation.method, url.rstrip("/") + path, headers=headers, content=content, keep=LARGEST_ANSWER)
    except OutboundFailed as error:
        raise Unreachable(f"--url: {url} does not answer ({error.kind}); is the server running there?", exit_code=3) from None
    return Reply(
        reply.status,
        reply.body,
        media_type=reply.headers.get("content-type", ""),
        headers=dict(reply.headers),
        next_cursor=next_link_cursor(reply.headers.get("link", "")),
    )


def take_path_value(operation: AnyOperation, values: dict[str, object], name: str) -> object:
    """The value for the path, removed from `values`, under any of its spellings. Raises Failure."""
    known = field_spellings(operation.params)
    written = next((word for word in values if known.get(word) == known[name]), None)
    value = values.pop(written) if written is not None else None
    if value is None or value == "":
        raise Failure(f"{name}: missing; it is part of the address {operation.path}")
    return value


def next_link_cursor(link: str) -> str | None:
    """The cursor of the next page, from the Link header; None on the last page."""
    found = NEXT_LINK.search(link)
    if found is None:
        return None
    return unquote(found[2]) if found[2] else parse_qs(urlsplit(found[1]).query).get("starting_after", [None])[0]


def query_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(str(item) for item in cast("list[object]", value))
    return str(value)


UrlOption = Annotated[str | None, typer.Option("--url", envvar="RESELLER_URL", help="Ask this server; without it, the local database.")]
KeyOption = Annotated[
    str | None,
    typer.Option("--key", envvar="RESELLER_API_KEY", callback=warn_of_argument, help="API key for --url; else your login there."),
]
OrgOption = Annotated[str | None, typer.Option("--org", help="Locally: the organisation to act for.")]
LocalDataOption = Annotated[Path | None, typer.Option("--data", help="Locally: the directory with the database.")]


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """Whom to ask, and as whom. The fields are options of every command that `at_target` makes."""

    url: UrlOption = None
    key: KeyOption = None
    org: OrgOption = None
    data: LocalDataOption = None


def option_parameters(options: type) -> list[Parameter]:
    """The fields of a dataclass of options, as the parameters that typer reads."""
    return [each.replace(kind=Parameter.KEYWORD_ONLY) for each in signature(options).parameters.values()]


def at_target(command: Callable[..., None]) -> Callable[..., None]:
    """`command` with the options of TargetOptions, behind its own, in place of its first parameter."""
    where = option_parameters(TargetOptions)

    @wraps(command)
    def run(**given: object) -> None:
        options = {each.name: given.pop(each.name) for each in where}
        command(TargetOptions(**options), **given)  # pyright: ignore[reportArgumentType]  # typer has parsed them to these types

    _, *own = signature(command).parameters.values()
    shown = Signature([*(each.replace(kind=Parameter.KEYWORD_ONLY) for each in own), *where])
    setattr(run, "__signature__", shown)  # noqa: B010  # typer reads the signature
    return run


class CallTarget(Protocol):
    @property
    def name(self) -> str:
        """The name of the target for the person at the terminal."""
        ...

    async def ask(
        self, operation: str, arguments: Mapping[str, object], *, idempotency_key: str | None = None, credential: str | None = None
    ) -> Reply:
        """One call; `credential` replaces the key where another one is needed. Raises Unreachable."""
        ...


@dataclass(frozen=True, slots=True)
class RemoteTarget:
    """A server elsewhere; connections are kept."""

    url: str
    key: str | None
    outbound: Outbound

    @property
    def name(self) -> str:
        return self.url

    async def ask(
        self, operation: str, arguments: Mapping[str, object], *, idempotency_key: str | None = None, credential: str | None = None
    ) -> Reply:
        wish = CommandCall(CATALOGUE.operations[operation], arguments, idempotency_key)
        return await exchange_call(self.outbound, self.url, credential or self.key, wish)


@dataclass(frozen=True, slots=True)
class LocalTarget:
    """The local database; whoever may write it is trusted, also as the bridge."""

    service: Service
    organisation: str | None

    @property
    def name(self) -> str:
        return "the local database"

    async def ask(
        self, operation: str, arguments: Mapping[str, object], *, idempotency_key: str | None = None, credential: str | None = None
    ) -> Reply:
        del credential
        found = CATALOGUE.operations[operation]
        if is_simulated(found, self.service.settings):
            refuse_simulated(found)
        await self.service.flush()  # a command that follows for hours keeps its lease and its audit rows current
        try:
            return await ask_locally(self.service, CommandCall(found, arguments, idempotency_key), self.organisation)
        except StoreUnavailable as error:  # before there was a call: the caller is read from the same database
            raise Unreachable(f"the database does not answer: {error.message}", exit_code=3) from None


@asynccontextmanager
async def open_target(where: TargetOptions) -> AsyncGenerator[CallTarget]:
    """The target, closed when the block ends. Raises Failure."""
    require_one_place(where.url, where.org, where.data)
    if where.url:
        outbound = Outbound()
        try:
            yield RemoteTarget(where.url, where.key, outbound)
        finally:
            await outbound.aclose()
        return
    async with open_local(command_settings(data=where.data)) as service:
        yield LocalTarget(service, where.org)


def require_one_place(url: str | None, org: str | None, data: Path | None) -> None:
    """Raises Failure for a server together with options of the local database, since one of them would be ignored."""
    local = [name for name, value in (("--org", org), ("--data", data)) if value is not None]
    if url and local:
        raise Failure(
            f"{' and '.join(local)}: for the local database, and {url} is to be asked (--url or RESELLER_URL), where the key says for "
            f"whom; leave {' and '.join(local)} out, or unset RESELLER_URL",
            exit_code=2,
        )


def require_success(reply: Reply, command: str) -> Reply:
    """`reply` itself. Raises Failure for a refusal; `command`: what to type again."""
    if reply.status == 202 or reply.status >= 400:
        raise Failure(explain_refusal(reply, command), exit_code=3 if reply.status >= 500 else 1)
    return reply


def unknown_organisation(organisation: str) -> Failure:
    return Failure(f"{organisation}: no such organisation; `reseller org list` names them", exit_code=1)


async def require_organisation(service: Service, organisation: str, *, option: str = "") -> None:
    """Raises Failure for an unknown id; `option` names where it was given, if not as an argument."""
    if organisation not in {row.id for row in await service.store.read(list_organisations)}:
        raise unknown_organisation(f"{option} {organisation}".lstrip())


def fresh_key(prefix: str) -> str:
    """An idempotency key that begins with `prefix`; every one makes a new call."""
    return SystemIds(SystemClock()).new(prefix)


JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def call_once(where: TargetOptions, operation: str, arguments: Mapping[str, object], command: str) -> Reply:
    """The answer to one call; a refusal is a `Failure` in the words of `command`, which is to be typed again."""

    async def call() -> Reply:
        async with open_target(where) as target:
            return await target.ask(operation, arguments)

    return require_success(asyncio.run(call()), command)


def read_every_page(where: TargetOptions, operation: str, command: str) -> list[dict[str, object]]:
    """The rows of all pages of a list; a refusal is a `Failure` in the words of `command`."""

    async def read() -> list[dict[str, object]]:
        rows: list[dict[str, object]] = []
        more: dict[str, object] = {}
        async with open_target(where) as target:
            while True:
                page = orjson.loads(require_success(await target.ask(operation, {"limit": 100, **more}), command).body)
                rows += page["data"]
                if not page["has_more"]:
                    return rows
                more = {"starting_after": rows[-1]["id"]}

    return asyncio.run(read())


def user_name() -> str | None:
    """The user's name; None for a user without one, as in some containers."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return None


LONGEST_DECIDER_NAME = 64


def decider_name(by: str | None) -> str:
    """`by`, or the user's name, for the audit log. Raises Failure."""
    by = user_name() if by is None else by
    if by is None:
        raise Failure("--by: your user has no name here; say who decides, for the audit log")
    if not by.strip() or len(by) > LONGEST_DECIDER_NAME or not by.isprintable():
        raise Failure(f"--by: 1-{LONGEST_DECIDER_NAME} visible characters")
    return by.strip()
