"""`reseller members`: who is in an organisation, asking somebody in, putting somebody out."""

import asyncio
from typing import Annotated, cast

import typer

from operations.setup.members import Member
from registry.limits import Role
from transports.cli.door import Data, Key, Org, Url, Where, open_door
from transports.cli.keys import AsJson, ask, every
from transports.cli.render import cell, indented, print_line

members_app = typer.Typer(no_args_is_help=True, help="List the members of an organisation, invite and remove them.")


@members_app.command("list")
def show(as_json: AsJson = False, url: Url = None, key: Key = None, org: Org = None, data: Data = None) -> None:
    """List members and those who are invited: id, role, status, address, name."""
    rows = asyncio.run(read(Where(url, key, org, data)))
    if as_json:
        print_line(indented({"data": rows}))
        return
    for row in rows:
        words = (row["id"], row["role"], row["status"], row["email"] or "no address", row["name"] or "")
        print_line("\t".join(map(cell, words)).rstrip("\t"))


@members_app.command("invite")
def invite(
    email: Annotated[str, typer.Argument(help="The address they sign in with.")],
    role: Annotated[Role, typer.Option("--role", help="What they will be.")] = Role.MEMBER,
    url: Url = None,
    key: Key = None,
    org: Org = None,
    data: Data = None,
) -> None:
    """Invite somebody by mail, for 7 days; again renews it. A running server sends the mail."""
    arguments: dict[str, object] = {"email": email, "role": role.value}
    made = cast(Member, asyncio.run(ask(Where(url, key, org, data), "invite_member", arguments, "reseller members invite")))
    print_line(f"{made['id']} invites {made['email']} as {made['role']}")


@members_app.command("remove")
def remove(
    id: Annotated[str, typer.Argument(metavar="MEMBER", help="A member's id, usr_..., or an invitation's, ivt_...")],
    url: Url = None,
    key: Key = None,
    org: Org = None,
    data: Data = None,
) -> None:
    """Remove a member with the keys they made, or withdraw an invitation; the last admin stays."""
    asyncio.run(ask(Where(url, key, org, data), "remove_member", {"id": id}, f"reseller members remove {id}"))
    print_line(f"removed {id}")


async def read(where: Where) -> list[Member]:
    """Everybody."""
    async with open_door(where) as door:
        return cast("list[Member]", await every(door, "list_members", "reseller members list"))
