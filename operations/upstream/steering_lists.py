"""Steering lists: which one a line goes by, and which networks it holds, as far as the charging system tells.

The documented list has a name and nothing of its networks.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, NamedTuple, cast

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.resellers import SteeringList as WireSteeringList
from clients.ocs.wire_schema import keeps_unknown
from operations.upstream.connection import Upstream
from operations.upstream.lines import Line
from operations.upstream.resellers import STEERING_LISTS, read_reseller_list
from operations.vocabulary import network_country
from registry.errors import Refusal
from registry.free_text import FreeText


class SteeringNetwork(TypedDict):
    """A network that a steering list prefers."""

    operatorName: FreeText
    countryIso2: Annotated[str, Field(description="ISO 3166-1 alpha-2, upper case")]
    tadigs: list[str]


@keeps_unknown
class SteeringList(WireSteeringList, total=False):
    """A steering list, with its networks where the charging system tells them."""

    networks: Annotated[list[SteeringNetwork] | None, Field(description="Null: the charging system does not tell them")]
    networksKnown: bool


def render_steering_list(row: WireSteeringList) -> SteeringList:
    networks = steering_networks(row)
    return {**row, "networks": networks, "networksKnown": networks is not None}


def steering_networks(row: WireSteeringList) -> list[SteeringNetwork] | None:
    """The networks that `row` names; None where it names none, as the documented list never does.

    Choice: a charging system that tells more is expected to name them in `operators`, as it does for a zone. Anything else there is
    passed on as it came and not understood.
    """
    members: Mapping[str, object] = row
    named = members.get("operators")
    if not isinstance(named, list):
        return None
    found = [steering_network(each) for each in cast("list[object]", named)]
    known = [network for network in found if network is not None]
    return known if len(known) == len(found) else None


def steering_network(named: object) -> SteeringNetwork | None:
    """One network of a list; None unless it says in which country it is."""
    if not isinstance(named, dict):
        return None
    members = cast("dict[str, object]", named)
    country, tadigs = members.get("countryIso2"), members.get("tadigs")
    if not isinstance(country, str) or not country:
        return None
    codes = [str(code) for code in cast("list[object]", tadigs)] if isinstance(tadigs, list) else []
    return {"operatorName": str(members.get("operatorName") or "").strip(), "countryIso2": country.upper(), "tadigs": codes}


class LineSteering(NamedTuple):
    """What a push sends to the SIM of a line, as far as it is known before it is sent."""

    line: Line
    list_id: int | None
    name: str | None
    country: str | None
    """Where the charging system saw the line last, ISO 3166-1 alpha-2."""
    networks: list[SteeringNetwork] | None
    """Those of the list in `country`."""


async def read_line_steering(line: Line) -> LineSteering:
    """The list that `line` goes by, its own else its account's, and where the line is; lists are a minute old at most.

    What cannot be read stays unknown, so that a push does not depend on it. Waits for the network.
    """
    country, list_id, row = last_country(line), None, None
    with suppress(Refusal):
        list_id = await steering_list_id(line)
        row = None if list_id is None else await find_steering_list(line.upstream, list_id)
    networks = None if row is None or country is None else steering_networks(row)
    there = None if networks is None else [network for network in networks if network["countryIso2"] == country]
    return LineSteering(line, list_id, None if row is None else row.get("name"), country, there)


async def steering_list_id(line: Line) -> int | None:
    """The id of the line's own steering list, else of its account's. Waits for the network."""
    own = line.row.get("steeringListId")
    if own is not None:
        return own
    accounts = await line.upstream.accounts()
    return next((row.get("steeringListId") for row in accounts if row.get("id") == line.row.get("accountId")), None)


async def find_steering_list(upstream: Upstream, list_id: int) -> WireSteeringList | None:
    """The list with this id, of the caller's reseller. Waits for the network."""
    rows = await read_reseller_list(upstream, STEERING_LISTS)
    return next((row for row in rows if row.get("id") == list_id), None)


def last_country(line: Line) -> str | None:
    """The country of the network that `line` was seen in last; None where its codes do not tell."""
    seen = line.row.get("networkInfo", {})
    mcc, mnc = seen.get("lastMcc", line.row.get("lastMcc")), seen.get("lastMnc", line.row.get("lastMnc"))
    if mcc is None or not 0 < mcc < 1000:
        return None
    return network_country(f"{mcc:03d}", None if mnc is None else str(mnc))
