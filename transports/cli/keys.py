"""`reseller keys`: make, list and revoke API keys, here or at a server, and change the key that seals what is in the database."""

import asyncio
from typing import Annotated, cast

import orjson
import typer

from operations.services.people.key_restrictions import ShownRestrictions
from operations.setup.api_keys import ListedApiKey
from transports.cli.door import Data, Door, Key, Org, Url, Where, accepted, open_door
from transports.cli.rekey import rekey
from transports.cli.render import cell, indented, print_line
from transports.cli.rotate import rotate_signing

keys_app = typer.Typer(no_args_is_help=True, help="Make, list and revoke API keys; seal stored secrets with a new key.")
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Toolsets = Annotated[list[str] | None, typer.Option("--toolset", help="Only operations of this toolset; may be repeated.")]
Iccids = Annotated[list[str] | None, typer.Option("--iccid", help="Only operations on this line; may be repeated.")]
Accounts = Annotated[list[int] | None, typer.Option("--account", help="Only operations in this account; may be repeated.")]
keys_app.command("rekey")(rekey)
keys_app.command("rotate-signing")(rotate_signing)


@keys_app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="What the key is for, 1-64 characters.")],
    days: Annotated[int | None, typer.Option("--days", min=1, max=365, help="Days until it expires; absent: never.")] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Only what changes nothing.")] = False,
    toolset: Toolsets = None,
    iccid: Iccids = None,
    account: Accounts = None,
    calls_per_day: Annotated[int | None, typer.Option("--calls-per-day", min=1, max=1_000_000, help="Calls per UTC day.")] = None,
    url: Url = None,
    key: Key = None,
    org: Org = None,
    data: Data = None,
) -> None:
    """Make a key; it is printed once and only its digest is kept. What it is restricted to it can never exceed."""
    arguments: dict[str, object] = {"name": name}
    if days:
        arguments["seconds_until_expiration"] = days * 86_400
    asked: dict[str, object] = {
        "read_only": read_only,
        "toolsets": toolset,
        "iccids": iccid,
        "account_ids": account,
        "calls_per_day": calls_per_day,
    }
    restrictions = {name: value for name, value in asked.items() if value}
    if restrictions:
        arguments["restrictions"] = restrictions
    made = asyncio.run(ask(Where(url, key, org, data), "create_api_key", arguments, "reseller keys create"))
    print_line(cast("dict[str, str]", made)["secret"])


@keys_app.command("list")
def show(as_json: AsJson = False, url: Url = None, key: Key = None, org: Org = None, data: Data = None) -> None:
    """List keys: id, first characters, name, last day of use, state, and what each is restricted to."""
    rows = asyncio.run(read(Where(url, key, org, data)))
    if as_json:
        print_line(indented({"data": rows}))
        return
    for row in rows:
        held = row["restrictions"]
        words = [row["id"], row["prefix"] + "...", row["name"], row["last_used_on"] or "never used", state(row)]
        print_line("\t".join(map(cell, words if held is None else [*words, told(held)])))


@keys_app.command("revoke")
def revoke(
    id: Annotated[str, typer.Argument(metavar="KEY", help="The key's id, key_...")],
    url: Url = None,
    key: Key = None,
    org: Org = None,
    data: Data = None,
) -> None:
    """Revoke a key and those that were made with it; a running server refuses them from the next call on."""
    asyncio.run(ask(Where(url, key, org, data), "revoke_api_key", {"id": id}, f"reseller keys revoke {id}"))
    print_line(f"revoked {id}")


def state(row: ListedApiKey) -> str:
    """In words."""
    expires = row["expires_at"]
    if row["status"] != "active":
        return row["status"]
    return "never expires" if expires is None else f"expires {expires[:10]}"


def told(held: ShownRestrictions) -> str:
    """What a key may not do, in words."""
    lists = (("toolsets", held["toolsets"]), ("lines", held["iccids"]), ("accounts", held["account_ids"]))
    found = ["read only"] if held["read_only"] else []
    found += ["no admin"] if held["no_admin"] else []
    found += [f"{what} {' '.join(map(str, names))}" for what, names in lists if names is not None]
    found += [] if held["calls_per_day"] is None else [f"{held['calls_per_day']} calls a day"]
    return ", ".join(found)


async def ask(where: Where, operation: str, arguments: dict[str, object], command: str) -> object:
    """One call's answer."""
    async with open_door(where) as door:
        return orjson.loads(accepted(await door.ask(operation, arguments), command).body)


async def read(where: Where) -> list[ListedApiKey]:
    """Every key."""
    async with open_door(where) as door:
        return cast("list[ListedApiKey]", await every(door, "list_api_keys", "reseller keys list"))


async def every(door: Door, operation: str, command: str) -> list[dict[str, object]]:
    """Every page of a list."""
    rows: list[dict[str, object]] = []
    more: dict[str, object] = {}
    while True:
        page = orjson.loads(accepted(await door.ask(operation, {"limit": 100, **more}), command).body)
        rows += page["data"]
        if not page["has_more"]:
            return rows
        more = {"starting_after": rows[-1]["id"]}
