"""Where the pipeline holds a call to its credential's restrictions."""

from collections.abc import Iterable
from typing import Any

from registry.errors import Restricted
from registry.model import Input
from registry.operation import Operation
from registry.restrictions import Restrictions

LINE, ACCOUNT = "iccid", "account_id"


def names_line(operation: Operation[Any, Any]) -> bool:
    """Whether the operation's input names the one line it is about."""
    return LINE in operation.params.model_fields


def account_fields(operation: Operation[Any, Any]) -> list[str]:
    """The fields that name accounts."""
    return [name for name in operation.params.model_fields if name == ACCOUNT or name.endswith("_" + ACCOUNT)]


def permits(operation: Operation[Any, Any], restrictions: Restrictions, inside: frozenset[str]) -> bool:
    """Whether the credential may call the operation at all; `inside` are the operations of its toolsets.

    A credential for named lines or accounts may call only what names one: everything else would show or change others, too.
    """
    if restrictions.toolsets is not None and operation.id not in inside:
        return False
    if restrictions.iccids is not None and not names_line(operation):
        return False
    return restrictions.account_ids is None or names_line(operation) or bool(account_fields(operation))


def check_operation(operation: Operation[Any, Any], restrictions: Restrictions, inside: frozenset[str]) -> None:
    """Refuse an operation that the credential's restrictions leave out."""
    if permits(operation, restrictions, inside):
        return
    if restrictions.toolsets is not None and operation.id not in inside:
        names = ", ".join(restrictions.toolsets) or "none"
        raise Restricted(f"This API key is restricted to the toolsets {names}, and {operation.id} is in none of them")
    what = "lines (iccids)" if restrictions.iccids is not None and not names_line(operation) else "accounts (account_ids)"
    raise Restricted(f"This API key is restricted to named {what}, and {operation.id} is about more than one")


def check_input(operation: Operation[Any, Any], params: Input, restrictions: Restrictions) -> None:
    """Refuse lines and accounts that are not on the credential's lists."""
    if restrictions.iccids is not None:
        require_listed(params, [LINE], restrictions.iccids, "lines")
    if restrictions.account_ids is not None:
        require_listed(params, account_fields(operation), restrictions.account_ids, "accounts")


def require_listed(params: Input, fields: Iterable[str], listed: tuple[str, ...] | tuple[int, ...], what: str) -> None:
    """Every one of the fields must be given, and on the list."""
    for name in fields:
        if getattr(params, name) not in listed:
            shown = type(params).model_fields[name].alias or name
            hint = f"Give one of: {', '.join(str(known) for known in listed[:5])}" if listed else "Use another key"
            raise Restricted(f"{shown}: this API key is restricted to named {what}, and this is none of them", param=shown, hint=hint)


def check_reached(operation: Operation[Any, Any], restrictions: Restrictions, *, seen: bool) -> None:
    """Under a restriction to accounts a line is believed to be in one of them only when the operation has looked."""
    if restrictions.account_ids is not None and not seen and not account_fields(operation):
        raise Restricted(f"This API key is restricted to named accounts, and {operation.id} does not look which account a line is in")


def check_account(account_id: int | None, restrictions: Restrictions) -> None:
    """Refuse a line of an account that is not on the credential's list."""
    if restrictions.account_ids is not None and account_id not in restrictions.account_ids:
        raise Restricted("This API key is restricted to named accounts, and the line is in none of them")
