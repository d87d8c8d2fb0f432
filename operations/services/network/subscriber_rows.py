"""A line as operators see it: what holds now is lifted out of the histories, PIN and PUK are gone."""

from collections.abc import Mapping, Sequence
from typing import Annotated, cast

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.wire.members import keeps_unknown
from clients.ocs.wire.subscriber import Subscriber, SubscriberFields, Utc
from operations.deps import Ctx
from operations.services.network.line_history import current
from operations.services.network.passing import chosen

SECRETS = frozenset({"pin1", "puk1", "pin2", "puk2"})
INSTALL_CODES = ("activationCode", "confirmationCode")
"""Members of `sim` that install the profile on any device."""


@keeps_unknown
class PublicSim(TypedDict, total=False):
    """The SIM of a line. The activation code is a secret of whoever installs the profile."""

    id: int
    subscriberId: int
    esim: bool
    status: Annotated[str, Field(description="FREE or AFFECTED")]
    affectationDateUtc: Utc
    smdpServer: str
    activationCode: str
    confirmationCode: str


@keeps_unknown
class SubscriberRow(SubscriberFields, total=False):
    """A line as the network knows it."""

    iccid: Annotated[str | None, Field(description="The one in use")]
    imsi: Annotated[str | None, Field(description="The one in use")]
    msisdn: Annotated[str | None, Field(description="The phone number in use, digits without plus")]
    currentStatus: Annotated[str | None, Field(description="The last row of `status`: Active, Inactive, Suspended, ...")]
    sim: PublicSim


def current_status(row: Subscriber) -> object:
    """The status that holds now, before the row is made public; a network that names it itself is believed."""
    named: Mapping[str, object] = row
    status = current(row.get("status", ()))
    return named.get("currentStatus", status.get("status") if status else None)


def public_row(row: Subscriber) -> SubscriberRow:
    """The line with `currentStatus`, its identifiers in use, and without what unlocks the card."""
    imsi, number = current(row.get("imsiList", ())), current(row.get("phoneNumberList", ()))
    shown: dict[str, object] = {
        "iccid": imsi.get("iccid") if imsi else None,
        "imsi": imsi.get("imsi") if imsi else None,
        "msisdn": number.get("phoneNumber") if number else None,
        "currentStatus": current_status(row),
        **row,
    }
    sim = row.get("sim")
    if sim is not None:
        shown["sim"] = {name: value for name, value in sim.items() if name not in SECRETS}
    return cast(SubscriberRow, shown)


def chosen_rows(ctx: Ctx, rows: list[SubscriberRow], fields: Sequence[str] | None) -> list[SubscriberRow]:
    """The rows with the members that `fields` names. Codes are shown where it names each; without `fields` a row is whole.

    Choice: neither `*` nor `sim` names the codes, so that nobody is shown them who asked for something else.
    """
    if fields is None:
        return rows
    named = [name.removeprefix("sim.") for name in fields]
    codes = [name for name in INSTALL_CODES if name in named]
    members = [name for name in fields if name.removeprefix("sim.") not in INSTALL_CODES]
    parts = chosen(ctx, [without_codes(row) for row in rows], members) if members else [SubscriberRow() for _ in rows]
    return [with_codes(part, row, codes) for part, row in zip(parts, rows, strict=True)] if codes else parts


def without_codes(row: SubscriberRow) -> SubscriberRow:
    """The row without what installs its profile."""
    sim = row.get("sim")
    if sim is None:
        return row
    return {**row, "sim": cast(PublicSim, {name: value for name, value in sim.items() if name not in INSTALL_CODES})}


def with_codes(part: SubscriberRow, row: SubscriberRow, codes: Sequence[str]) -> SubscriberRow:
    """The part of a row with these codes of it, where it has them."""
    found = {name: value for name, value in row.get("sim", {}).items() if name in codes}
    return {**part, "sim": cast(PublicSim, {**part.get("sim", {}), **found})} if found else part


def subscriber_id(row: Subscriber | SubscriberRow) -> int:
    """The number of a line."""
    return row.get("subscriberId", 0)
