"""`reseller members`: who is in an organisation, asking somebody in, putting somebody out."""

from typing import Annotated, cast

import orjson
import typer

from operations.setup.members import Member
from registry.caller import Role
from transports.cli.target import JsonOption, TargetOptions, at_target, call_once, read_every_page
from transports.cli.terminal import print_line, print_rows

members_app = typer.Typer(no_args_is_help=True, help="List the members of an organisation, invite and remove them.")


@members_app.command("list")
@at_target
def list_org_members(where: TargetOptions, as_json: JsonOption = False) -> None:
    """List members and those who are invited: id, role, status, address, name."""
    rows = read_every_page(where, "list_members", "reseller members list")
    print_rows(cast("list[Member]", rows), member_cells, as_json=as_json)


def member_cells(row: Member) -> list[str]:
    return [row["id"], row["role"], row["status"], row["email"] or "no address", *([row["name"]] if row["name"] else [])]


@members_app.command("invite")
@at_target
def invite_org_member(
    where: TargetOptions,
    email: Annotated[str, typer.Argument(help="The address they sign in with.")],
    role: Annotated[Role, typer.Option("--role", help="What they will be.")] = Role.MEMBER,
) -> None:
    """Invite somebody by mail, for 7 days; again renews it. A running server sends the mail."""
    arguments: dict[str, object] = {"email": email, "role": role.value}
    made: Member = orjson.loads(call_once(where, "invite_member", arguments, "reseller members invite").body)
    print_line(f"{made['id']} invites {made['email']} as {made['role']}")


@members_app.command("remove")
@at_target
def remove_org_member(
    where: TargetOptions,
    id: Annotated[str, typer.Argument(metavar="MEMBER", help="A member's id, usr_..., or an invitation's, ivt_...")],
) -> None:
    """Remove a member with the keys they made, or withdraw an invitation; the last admin stays."""
    call_once(where, "remove_member", {"id": id}, f"reseller members remove {id}")
    print_line(f"removed {id}")
