"""What a restricted credential may call, and with which input."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from registry.caller import Caller, Restrictions, Role
from registry.errors import Restricted
from registry.operation import Input, Operation

LINE_FIELD, ACCOUNT_FIELD = "iccid", "account_id"
ACCOUNT_FIELD_ENDINGS = ("_account", "_" + ACCOUNT_FIELD)


class CallerView(NamedTuple):
    """What of a caller decides which operations they are shown: few differ, however many keys there are."""

    scopes: int
    admin: bool
    toolsets: tuple[str, ...] | None
    lines: bool
    accounts: bool
    tags: bool
    restricted: bool


def caller_view(caller: Caller) -> CallerView:
    held = caller.restrictions
    lines, accounts, tags = (entries is not None for entries in (held.iccids, held.account_ids, held.tags))
    return CallerView(caller.scopes, caller.is_admin, held.toolsets, lines, accounts, tags, caller.restricted)


def is_shown_to(operation: Operation[Any, Any], caller: Caller, inside: frozenset[str]) -> bool:
    """Whether a list of tools names the operation to this caller: a courtesy, the pipeline is the gate."""
    if operation.authority is not None and caller.restricted and not operation.authority.narrower:
        return False
    return is_permitted(operation, caller.restrictions, inside) and (operation.role is not Role.ADMIN or caller.is_admin)


def names_one_line(operation: Operation[Any, Any]) -> bool:
    """Whether the operation's input must name one line; an optional filter of a list does not count."""
    field = operation.params.model_fields.get(LINE_FIELD)
    return field is not None and field.is_required()


def account_fields(operation: Operation[Any, Any]) -> list[str]:
    return [name for name in operation.params.model_fields if name == ACCOUNT_FIELD or name.endswith(ACCOUNT_FIELD_ENDINGS)]


def is_permitted(operation: Operation[Any, Any], restrictions: Restrictions, inside: frozenset[str]) -> bool:
    """Whether the credential may call the operation at all; `inside` are the operations of its toolsets.

    A credential for named lines, tags or accounts may call only what names one, or holds itself to those it may see: everything else would
    show or change others, too.
    """
    if restrictions.toolsets is not None and operation.id not in inside:
        return False
    if operation.bounded:
        return True
    if (restrictions.iccids is not None or restrictions.tags is not None) and not names_one_line(operation):
        return False
    return restrictions.account_ids is None or names_one_line(operation) or bool(account_fields(operation))


def check_restricted_operation(operation: Operation[Any, Any], restrictions: Restrictions, inside: frozenset[str]) -> None:
    """Refuse an operation that the credential's restrictions leave out."""
    if is_permitted(operation, restrictions, inside):
        return
    if restrictions.toolsets is not None and operation.id not in inside:
        names = ", ".join(restrictions.toolsets) or "none"
        raise Restricted(f"This API key is restricted to the toolsets {names}, and {operation.id} is in none of them")
    what = "accounts (account_ids)"
    if not names_one_line(operation):
        what = "lines (iccids)" if restrictions.iccids is not None else "lines (tags)" if restrictions.tags is not None else what
    raise Restricted(f"This API key is restricted to named {what}, and {operation.id} is about more than one")


def check_restricted_input(operation: Operation[Any, Any], params: Input, restrictions: Restrictions) -> None:
    """Refuse lines and accounts that are not on the credential's lists. An operation that holds itself to them may be given none."""
    if restrictions.iccids is not None:
        lines = [LINE_FIELD] if LINE_FIELD in type(params).model_fields or not operation.bounded else []
        require_on_list(params, given_fields(operation, params, lines), restrictions.iccids, "lines")
    if restrictions.account_ids is not None:
        accounts = given_fields(operation, params, required_account_fields(operation, params))
        require_on_list(params, accounts, restrictions.account_ids, "accounts")


def given_fields(operation: Operation[Any, Any], params: Input, fields: list[str]) -> list[str]:
    """The fields of `fields` that must name something on a list: all, or those that name anything where the operation is bounded."""
    return [name for name in fields if getattr(params, name) is not None] if operation.bounded else fields


def check_authority(operation: Operation[Any, Any], caller: Caller, params: Input | None = None) -> None:
    """Refuse a restricted credential what changes who may act for its organisation. Without `params` what may name the caller's own
    credential passes, and is asked about again when the input is known."""
    authority = operation.authority
    if authority is None or authority.narrower or not caller.restricted:
        return
    if authority.itself is not None and (params is None or getattr(params, authority.itself) == caller.key_id):
        return
    rule = "This credential may do less than its person, so it changes nobody's access"
    if authority.itself is not None:
        own = f"Give its own id, {caller.key_id}" if caller.kind == "key" else "End this login where it was made"
        raise Restricted(f"{authority.itself}: {rule} but its own", param=authority.itself, hint=f"{own}, or use another credential")
    raise Restricted(rule, hint="Use a key without restrictions, a login that was granted all that you may do, or the service's own pages")


def required_account_fields(operation: Operation[Any, Any], params: Input) -> list[str]:
    """The fields that must name listed accounts. Where one is required, another that was left out means nothing more; where none is,
    leaving it out means all accounts."""
    fields = account_fields(operation)
    if any(operation.params.model_fields[name].is_required() for name in fields):
        return [name for name in fields if getattr(params, name) is not None]
    return fields


def require_on_list(params: Input, fields: Iterable[str], listed: tuple[str, ...] | tuple[int, ...], what: str) -> None:
    """Every one of the fields must be given, and on the list."""
    for name in fields:
        value = getattr(params, name)
        if value not in listed:
            shown = type(params).model_fields[name].alias or name
            hint = f"Give one of: {', '.join(str(known) for known in listed[:5])}" if listed else "Use another key"
            rule = f"this API key is restricted to named {what}"
            text = f"missing: {rule}, so name one" if value is None else f"{rule}, and this is none of them"
            raise Restricted(f"{shown}: {text}", param=shown, hint=hint)


def check_account_was_seen(operation: Operation[Any, Any], *, seen: bool) -> None:
    """Under a restriction to accounts a line is believed to be in one of them only when the operation has looked (`seen`)."""
    if not seen and operation.bounded:
        raise Restricted(f"This API key is restricted to some lines or accounts, and {operation.id} does not look which it shows")
    if not seen and (names_one_line(operation) or not account_fields(operation)):
        raise Restricted(f"This API key is restricted to named accounts, and {operation.id} does not look which account a line is in")


def check_tags_were_seen(operation: Operation[Any, Any], *, seen: bool) -> None:
    """Under a restriction to tags a line is believed to have one of them only when the operation has looked (`seen`)."""
    if not seen:
        raise Restricted(f"This API key is restricted to lines with certain tags, and {operation.id} does not look which tags a line has")


def check_line_tags(tags: Iterable[str], restrictions: Restrictions) -> None:
    """Refuse a line without any of the credential's tags; `tags`: what it has."""
    if restrictions.tags is not None and set(restrictions.tags).isdisjoint(tags):
        listed = ", ".join(restrictions.tags[:5]) or "none"
        raise Restricted(f"This API key is restricted to lines that have one of the tags {listed}, and this line has none of them")


def check_line_account(account_id: int | None, restrictions: Restrictions) -> None:
    """Refuse a line of an account that is not on the credential's list."""
    if restrictions.account_ids is not None and account_id not in restrictions.account_ids:
        raise Restricted("This API key is restricted to named accounts, and the line is in none of them")
