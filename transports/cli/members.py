"""`reseller members`: who is in an organisation, asking somebody in, putting somebody out."""

import asyncio
from typing import Annotated, cast

import typer

from operations.setup.members import Member
from registry.limits import Role
from transports.cli.render import indented_json, print_line, table_cell
from transports.cli.target import (
    JsonOption,
    KeyOption,
    LocalDataOption,
    OrgOption,
    TargetOptions,
    UrlOption,
    call_for_object,
    open_target,
    read_every_page,
)

members_app = typer.Typer(no_args_is_help=True, help="List the members of an organisation, invite and remove them.")


@members_app.command("list")
def list_org_members(
    as_json: JsonOption = False, url: UrlOption = None, key: KeyOption = None, org: OrgOption = None, data: LocalDataOption = None
) -> None:
    """List members and those who are invited: id, role, status, address, name."""
    rows = asyncio.run(read_members(TargetOptions(url, key, org, data)))
    if as_json:
        print_line(indented_json({"data": rows}))
        return
    for row in rows:
        words = (row["id"], row["role"], row["status"], row["email"] or "no address", row["name"] or "")
        print_line("\t".join(map(table_cell, words)).rstrip("\t"))


@members_app.command("invite")
def invite_org_member(
    email: Annotated[str, typer.Argument(help="The address they sign in with.")],
    role: Annotated[Role, typer.Option("--role", help="What they will be.")] = Role.MEMBER,
    url: UrlOption = None,
    key: KeyOption = None,
    org: OrgOption = None,
    data: LocalDataOption = None,
) -> None:
    """Invite somebody by mail, for 7 days; again renews it. A running server sends the mail."""
    arguments: dict[str, object] = {"email": email, "role": role.value}
    made = cast(
        Member, asyncio.run(call_for_object(TargetOptions(url, key, org, data), "invite_member", arguments, "reseller members invite"))
    )
    print_line(f"{made['id']} invites {made['email']} as {made['role']}")


@members_app.command("remove")
def remove_org_member(
    id: Annotated[str, typer.Argument(metavar="MEMBER", help="A member's id, usr_..., or an invitation's, ivt_...")],
    url: UrlOption = None,
    key: KeyOption = None,
    org: OrgOption = None,
    data: LocalDataOption = None,
) -> None:
    """Remove a member with the keys they made, or withdraw an invitation; the last admin stays."""
    asyncio.run(call_for_object(TargetOptions(url, key, org, data), "remove_member", {"id": id}, f"reseller members remove {id}"))
    print_line(f"removed {id}")


async def read_members(where: TargetOptions) -> list[Member]:
    """Everybody."""
    async with open_target(where) as door:
        return cast("list[Member]", await read_every_page(door, "list_members", "reseller members list"))
