"""Calls in this process, on the database of the settings: no server needed, the operator is trusted as an admin."""

from collections.abc import Mapping

from operations.catalogue import CATALOGUE
from registry.answer import answer, gathered
from registry.call import Call, Reply
from registry.caller import ANONYMOUS, BRIDGE, Caller
from registry.catalogue import AnyOperation
from registry.operation import Auth
from storage.people.accounts import list_members, list_organisations
from transports.cli.failure import Failure
from transports.cli.progress_line import progress_line
from transports.cli.terminal_text import shown_on
from transports.service import Service, build_service
from transports.settings import Settings

BASE_URL = "http://127.0.0.1:8000"


def to_stderr(text: str) -> None:
    """Faults of ours, for the person at the terminal."""
    import sys

    sys.stderr.write(shown_on(sys.stderr, text) + "\n")


def fault(call: Call, error: BaseException) -> None:
    """A fault of ours, without what it says."""
    to_stderr(f"{call.request_id}: {type(error).__name__}")


async def open_local(settings: Settings, *, seed: bool = False, create: bool = False) -> Service:
    """The service without doors. Only what is meant to begin a database makes one: a wrong directory is more likely."""
    database = (settings.data / "service.db").absolute()
    if settings.embedded and not (seed or create or database.exists()):
        raise Failure(f"there is no database at {database}; start the service there, or name its directory with --data or SERVICE_DATA")
    service = build_service(settings, BASE_URL, report=to_stderr, apart=True)
    await service.start(seed=seed)
    return service


async def local_caller(service: Service, organisation: str | None) -> Caller:
    """The admin of the organisation named, or of the only one there is."""
    chosen = organisation or await only_organisation(service)
    if chosen is None:
        raise Failure("the database has no organisation yet; `reseller serve` on an empty one makes a demo organisation")
    members = await service.store.read(list_members, organisation=chosen)
    caller = await service.directory.member(members[0].person_id, chosen) if members else None
    if caller is None:
        raise Failure(f"--org: {chosen} is unknown or has no members")
    return caller


async def only_organisation(service: Service) -> str | None:
    """The id of the one organisation that there is, or None when there is none yet; of several one has to be named."""
    known = await service.store.read(list_organisations)
    if len(known) > 1:
        names = ", ".join(f"{o.id} ({o.name})" for o in known)
        raise Failure(f"--org: name the organisation to act for; there are: {names}")
    return known[0].id if known else None


def is_simulated(operation: AnyOperation, settings: Settings) -> bool:
    """Whether what it asks is a simulation, which another process has its own of."""
    return (operation.upstream and not settings.ocs_url) or (operation.processor and settings.simulates_payments)


def refuse_simulated(operation: AnyOperation) -> None:
    """A simulated network, or processor, lives as long as its process: what this command changed there would be gone when it ends."""
    what = "payment processor" if operation.processor else "network"
    where = f"the {what} is simulated, and this command would have one of its own"
    if not operation.read_only:
        raise Failure(f"{operation.id}: {where} that ends with it; call a running server with --url and --key")
    to_stderr(f"{where}: it shows nothing that was changed on a running server (--url and --key ask that one)")


async def call_locally(
    settings: Settings,
    operation: AnyOperation,
    arguments: Mapping[str, object],
    *,
    organisation: str | None,
    idempotency_key: str | None,
    confirm_token: str | None,
) -> Reply:
    """One call through the same pipeline as every other door."""
    if operation.id not in CATALOGUE.operations:
        raise Failure(f"{operation.id}: no such operation")
    if is_simulated(operation, settings):
        refuse_simulated(operation)
    service = await open_local(settings)
    try:
        return await ask_locally(
            service, operation, arguments, organisation=organisation, idempotency_key=idempotency_key, confirm_token=confirm_token
        )
    finally:
        await service.stop()


async def ask_locally(
    service: Service,
    operation: AnyOperation,
    arguments: Mapping[str, object],
    *,
    organisation: str | None,
    idempotency_key: str | None,
    confirm_token: str | None,
) -> Reply:
    """One call of a service that is open already."""
    caller = ANONYMOUS if operation.public else BRIDGE
    if not operation.public and operation.auth is not Auth.INTERNAL:
        caller = await local_caller(service, organisation)
    with progress_line() as progress:
        call = Call(
            operation=operation,
            surface="cli",
            request_id=service.ids.new("req_"),
            caller=caller,
            arguments=arguments,
            idempotency_key=idempotency_key,
            confirm_token=confirm_token,
            progress=progress,
        )
        return await gathered(await answer(service.pipeline, call, fault), call.request_id)
