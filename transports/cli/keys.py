"""`reseller keys`: make, list and revoke API keys, change the key that seals stored secrets, and the one that signs session tokens."""

import asyncio
import sys
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, cast

import orjson
import typer

from operations.people.signing_keys import KeyRotation, make_next_signing_key
from operations.setup.api_keys import ListedApiKey
from operations.setup.credentials.limit_use import LimitUse
from operations.setup.credentials.restrictions import ShownRestrictions
from registry.caller import Money
from registry.spending import shown_money
from storage.rekey import SEALED_COLUMNS, ResealResult, UnopenedValue, count_of_key, count_older, reseal
from storage.replicas import running_keys
from transports.cli.key_limits import (
    AnotherPersonOption,
    ApprovalOption,
    CallAmountOption,
    DayAmountOption,
    FreeAmountOption,
    KeyTagsOption,
    MonthAmountOption,
    TimesOption,
    limit_parts,
    read_amount,
    read_counts,
)
from transports.cli.target import DatabaseOption, JsonOption, TargetOptions, at_target, call_once, open_local, read_every_page
from transports.cli.terminal import Failure, command_settings, indented_json, print_line, print_rows
from transports.service import Service


def rekey_database(data: DatabaseOption = None) -> None:
    """Seal every stored secret with the first key of the keyring, so that the older keys can be dropped.

    1. Put a new key behind the old one (a comma, then kid:base64 of 32 bytes) in SERVICE_SECRET_KEYS or the file data/keyring, and
    restart every server and worker. 2. Move it to the front, and restart them again. 3. Run this; they may go on running, and it may be
    ended and begun again. 4. Drop the keys that it names as no longer needed. Backups made before need them still.
    """
    if not asyncio.run(run_rekey(data)):
        raise Failure("older keys are still needed, see above", exit_code=1)


async def run_rekey(data: Path | None) -> bool:
    """Seals column by column; returns whether only the first key is needed now."""
    async with open_local(command_settings(data=data)) as service:
        store, keyring = service.store, service.pipeline.deps.keyring
        unopened = 0
        for column in SEALED_COLUMNS:
            done = await reseal(store, keyring, column)
            print_column(column.name, done)
            unopened += done.unopened
        now = service.clock.now()
        running = [each for each in await store.read(running_keys, now=now) if each.id != service.journal.replica]
        return await print_key_needs(service, unopened, {each.known[0] for each in running if each.known})


def print_column(name: str, done: ResealResult) -> None:
    """Prints the result of a column and flushes, since the next one may take long."""
    print_line(f"{name:<33} {done.resealed} sealed again" + (f", {done.unopened} cannot be opened:" if done.unopened else ""))
    for value in done.named:
        print_line(f"  {value.row}: {unopened_reason(value)}")
    if done.unopened > len(done.named):
        print_line(f"  and {done.unopened - len(done.named)} more")
    sys.stdout.flush()


def unopened_reason(value: UnopenedValue) -> str:
    """Why the value cannot be opened, and the fix where there is one."""
    if value.missing_key is None:
        return "changed, or moved here from another row; only a backup has what it was"
    return f"sealed with key {value.missing_key}, which is not in the keyring: put that key back behind the first and run this again"


def key_need(count: int, fix: str | None) -> str:
    """Whether a key is needed: `count` values are sealed with it; `fix` ends its use by a running process."""
    if fix is not None:
        return f"still needed, a process that runs seals with it: {fix}, and run this again"
    return f"still needed, {count} sealed with it" if count else "no longer needed by this database"


async def print_key_needs(service: Service, unopened: int, sealing: AbstractSet[str]) -> bool:
    """Prints which keys are needed from now on. `sealing`: the keys that running processes seal with."""
    store, (first, *older) = service.store, service.pipeline.deps.keyring.key_ids
    for key in older:
        count = await store.read(count_of_key, key_id=key)
        print_line(f"key {key}: " + key_need(count, f"restart every process with key {first} in front" if key in sealing else None))
    left = await store.read(count_older, key_id=first)
    if not sealing <= {first}:
        return False
    if left == 0:
        print_line(f"every sealed value is sealed with key {first}")
    elif left > unopened:
        print_line(f"a server or worker does not seal with key {first} yet: restart it with that key in front, and run this again")
    return left == 0


def rotate_signing_key(data: DatabaseOption = None) -> None:
    """Make a new key for signing session tokens; servers may go on running.

    It is published at once and signs ten minutes later; the one before it stays published until its last tokens have expired, a day
    later. This happens by itself every 90 days.
    """
    made = asyncio.run(make_signing_key(data))
    print_line(f"made key {made.kid}; it signs from {datetime.fromtimestamp(made.signs_from, UTC):%Y-%m-%d %H:%M} UTC on")


async def make_signing_key(data: Path | None) -> KeyRotation:
    settings = command_settings(data=data)
    if not settings.own_identity:
        raise Failure("session tokens come from SERVICE_AUTH_ISSUER here, so there is no key of ours to sign them with", exit_code=1)
    async with open_local(settings) as service:
        return await make_next_signing_key(service.pipeline.deps, service.clock.now())


keys_app = typer.Typer(no_args_is_help=True, help="Make, list and revoke API keys; seal stored secrets with a new key.")
KeyToolsetsOption = Annotated[list[str] | None, typer.Option("--toolset", help="Only operations of this toolset; may be repeated.")]
KeyIccidsOption = Annotated[list[str] | None, typer.Option("--iccid", help="Only operations on this line; may be repeated.")]
KeyAccountsOption = Annotated[list[int] | None, typer.Option("--account", help="Only operations in this account; may be repeated.")]
keys_app.command("rekey")(rekey_database)
keys_app.command("rotate-signing")(rotate_signing_key)


@keys_app.command("create")
@at_target
def create_key(
    where: TargetOptions,
    name: Annotated[str, typer.Argument(help="What the key is for, 1-64 characters.")],
    days: Annotated[int | None, typer.Option("--days", min=1, max=365, help="Days until it expires; absent: never.")] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Only what changes nothing.")] = False,
    toolset: KeyToolsetsOption = None,
    iccid: KeyIccidsOption = None,
    account: KeyAccountsOption = None,
    tag: KeyTagsOption = None,
    calls_per_day: Annotated[int | None, typer.Option("--calls-per-day", min=1, max=1_000_000, help="Calls per UTC day.")] = None,
    spend_per_call: CallAmountOption = None,
    spend_per_day: DayAmountOption = None,
    spend_per_month: MonthAmountOption = None,
    times: TimesOption = None,
    approve_above: FreeAmountOption = None,
    approval: ApprovalOption = None,
    another_person: AnotherPersonOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make a key; it is printed once and only its digest is kept. What it is restricted to it can never exceed.

    The most that a restricted key can do in a day is told on standard error, with a warning for each limit that has no effect. With
    --json the whole answer is printed.
    """
    arguments: dict[str, object] = {"name": name}
    if days:
        arguments["seconds_until_expiration"] = days * 86_400
    limits: dict[str, object] = {
        "read_only": read_only,
        "toolsets": toolset,
        "iccids": iccid,
        "account_ids": account,
        "tags": tag,
        "calls_per_day": calls_per_day,
        "spend_per_call": read_amount("--spend-per-call", spend_per_call),
        "spend_per_day": read_amount("--spend-per-day", spend_per_day),
        "spend_per_month": read_amount("--spend-per-month", spend_per_month),
        "times": read_counts(times),
        "approve_above": read_amount("--approve-above", approve_above),
        "approval": approval,
        "another_person": another_person,
    }
    restrictions = {name: value for name, value in limits.items() if value}
    if restrictions:
        arguments["restrictions"] = restrictions
    made = call_once(where, "create_api_key", arguments, "reseller keys create")
    answer = orjson.loads(made.body)
    if as_json:
        print_line(indented_json(answer))
        return
    if answer["worst_case"] is not None:
        sys.stderr.write(f"{answer['worst_case']['sentence']}\n")
    for warning in answer.get("warnings", ()):  # a server of an earlier release has none
        sys.stderr.write(f"warning: {warning['message']}\n")
    print_line(answer["secret"])


@keys_app.command("explain")
@at_target
def explain_key(
    where: TargetOptions,
    id: Annotated[str | None, typer.Argument(metavar="KEY", help="The key's id, key_...; absent: the credential in use.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Say what a key is held to, what is used of its limits, and the most that it can do in a day."""
    answer = orjson.loads(call_once(where, "explain_key", {} if id is None else {"id": id}, "reseller keys explain").body)
    if as_json:
        print_line(indented_json(answer))
        return
    for words in answer["in_words"] or ["no restriction"]:
        print_line(words)
    for use in answer["used"]:
        print_line(use_text(use))
    print_line(answer["worst_case"]["sentence"])


def use_text(use: LimitUse) -> str:
    """How much of a limit is used: money with its currency, calls by their operation."""
    if use["limit"] in ("spend_per_day", "spend_per_month"):
        used, most = (shown_money(Money(amount, use["unit"])) for amount in (use["used"], use["most"]))
        return f"{use['limit']}: {used} of {most} used, until {use['starts_again']}"
    what = "calls_per_day" if use["limit"] == "calls_per_day" else f"{use['limit']} {use['unit']}"
    return f"{what}: {use['used']} of {use['most']} calls used, until {use['starts_again']}"


@keys_app.command("list")
@at_target
def list_keys(where: TargetOptions, as_json: JsonOption = False) -> None:
    """List keys: id, first characters, name, last day of use, state, and what each is restricted to."""
    rows = read_every_page(where, "list_api_keys", "reseller keys list")
    print_rows(cast("list[ListedApiKey]", rows), key_cells, as_json=as_json)


def key_cells(row: ListedApiKey) -> list[str]:
    cells = [row["id"], row["prefix"] + "...", row["name"], row["last_used_on"] or "never used", key_state(row)]
    restrictions = row["restrictions"]
    return cells if restrictions is None else [*cells, restrictions_text(restrictions)]


@keys_app.command("revoke")
@at_target
def revoke_key(
    where: TargetOptions,
    id: Annotated[str, typer.Argument(metavar="KEY", help="The key's id, key_...")],
) -> None:
    """Revoke a key and those that were made with it; a running server refuses them from the next call on."""
    call_once(where, "revoke_api_key", {"id": id}, f"reseller keys revoke {id}")
    print_line(f"revoked {id}")


def key_state(row: ListedApiKey) -> str:
    expires = row["expires_at"]
    if row["status"] != "active":
        return row["status"]
    return "never expires" if expires is None else f"expires {expires[:10]}"


def restrictions_text(restrictions: ShownRestrictions) -> str:
    lists = (
        ("toolsets", restrictions["toolsets"]),
        ("lines", restrictions["iccids"]),
        ("accounts", restrictions["account_ids"]),
        ("tags", restrictions["tags"]),
    )
    parts = ["read only"] if restrictions["read_only"] else []
    parts += ["no admin"] if restrictions["no_admin"] else []
    parts += [f"{what} {' '.join(map(str, names))}" for what, names in lists if names is not None]
    parts += [] if restrictions["calls_per_day"] is None else [f"{restrictions['calls_per_day']} calls a day"]
    parts += [] if restrictions["tags"] is None else [f"tags {' '.join(restrictions['tags'])}"]
    parts += limit_parts(restrictions)
    parts += [f"{part} with {each['key']}" for each in restrictions["inherited"] for part in limit_parts(each)]
    parts += [] if restrictions["approval"] == "none" else [f"approval of {restrictions['approval'].replace('_', ' ')}"]
    return ", ".join(parts)
