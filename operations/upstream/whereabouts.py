"""Where a line is now. One order of trust, wherever that is told: the newest registration that the charging system tells, then the newest
location that the network's bridge pushed to us, then use by day. docs/intelligence.md has it in words."""

from typing import Literal, NamedTuple

from clients.ocs.times import wire_seconds
from operations.upstream.lines import Line
from operations.upstream.signalling import NetworkCode, network_code
from operations.vocabulary import network_country
from storage.country_entries import CountryEntry


class LineWhereabouts(NamedTuple):
    """Where a line is, and what tells so. `seen`: Unix seconds; None: not told. A code may be of no single country."""

    code: NetworkCode
    country: str | None
    seen: float | None
    source: Literal["registration", "push"]


def line_whereabouts(line: Line, pushed: CountryEntry | None) -> LineWhereabouts | None:
    """Where `line`, which was just read, is; `pushed`: the country that it came into last by pushed locations. None: nothing tells."""
    code, seen = last_seen_network(line)
    if code is not None:
        return LineWhereabouts(code, network_country(f"{code[0]:03d}", str(code[1])), seen, "registration")
    code = None if pushed is None else network_code(pushed.mcc, pushed.mnc or "0")
    return None if pushed is None or code is None else LineWhereabouts(code, pushed.country, pushed.occurred_at, "push")


def last_seen_network(line: Line) -> tuple[NetworkCode | None, float | None]:
    """Network and time of the last registration; without a registration, the network that `line` names."""
    info = line.row.get("networkInfo", {})
    code = network_code(info.get("lastMcc"), info.get("lastMnc"))
    if code is not None:
        return code, wire_seconds(info.get("time"))
    return network_code(line.row.get("lastMcc"), line.row.get("lastMnc")), None
