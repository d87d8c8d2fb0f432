"""What a line is at this moment, read through the operations that show it, as the caller who plans or sends may see it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import orjson

from operations.deps import Deps
from registry.call import Reply
from registry.caller import Caller
from registry.errors import Refusal
from storage.line_tags import tags_of_lines

LineRowFacts = Mapping[str, object]
PACKAGE_ACTIONS = frozenset(
    {"assign_package", "assign_series", "stop_series", "set_package_status", "set_package_expiry", "set_package_limits", "delete_packages"}
)
"""Actions that have to know the packages of a line."""


class ChangeableLine(NamedTuple):
    """A line with its packages and tags, where the action has to know them."""

    iccid: str
    row: LineRowFacts
    packages: Sequence[LineRowFacts] = ()
    tags: Sequence[str] = ()

    @property
    def subscriber_id(self) -> int:
        return whole(self.row.get("subscriberId"))

    @property
    def account_id(self) -> int:
        return whole(self.row.get("accountId"))

    @property
    def status(self) -> str:
        """The status as the operations write it, such as SUSPENDED."""
        return str(self.row.get("currentStatus") or "UNKNOWN").upper().replace(" ", "_")

    @property
    def in_stock(self) -> bool:
        """Whether no customer has it yet."""
        sim = self.row.get("sim")
        return isinstance(sim, dict) and cast("LineRowFacts", sim).get("status") == "FREE"

    def package(self, id: object) -> LineRowFacts | None:
        """The package with this id."""
        return next((package for package in self.packages if package.get("packageId") == id), None)

    @property
    def series(self) -> Mapping[int, LineRowFacts]:
        """The series of packages of the line by their ids."""
        rows = (cast("LineRowFacts | None", package.get("recurring")) for package in self.packages)
        return {whole(row.get("id")): row for row in rows if row is not None}


def whole(value: object) -> int:
    return value if isinstance(value, int) else 0


class LineRefused(NamedTuple):
    """A line that could not be read. `passing`: another try may do better."""

    refusal: Refusal
    passing: bool


PASSING_CODES = frozenset({"rate_limited", "upstream_unavailable", "store_unavailable"})


def is_passing(refusal: Refusal) -> bool:
    """Whether the same call may do better in a moment: nothing was done, and nothing about the line stands in the way."""
    return refusal.error_code in PASSING_CODES or refusal.status >= 500


async def read_changeable_line(deps: Deps, caller: Caller, iccid: str, action: str, *, prepaid: bool) -> ChangeableLine | LineRefused:
    """Reads a line as `caller` may see it. `prepaid`: the call that this is part of was charged. Waits for the network."""
    calls = deps.internal_calls
    reply = await calls.call("get_subscriber", {"iccid": iccid}, caller=caller, surface="change", prepaid_by_parent=prepaid)
    if reply.refusal is not None:
        return LineRefused(reply.refusal, is_passing(reply.refusal))
    row, packages = data_of(reply), list[LineRowFacts]()
    if action in PACKAGE_ACTIONS:
        reply = await calls.call("list_subscriber_packages", {"iccid": iccid}, caller=caller, surface="change", prepaid_by_parent=True)
        if reply.refusal is not None:
            return LineRefused(reply.refusal, is_passing(reply.refusal))
        packages = cast("list[LineRowFacts]", data_of(reply))
    tags: list[str] = []
    if action == "set_tags":
        found = await deps.store.read(tags_of_lines, organisation=caller.organisation, iccids=[iccid])
        tags = [line.tag for line in found]
    return ChangeableLine(iccid, cast(LineRowFacts, row), packages, tags)


def data_of(reply: Reply) -> object:
    """`data` of an answer."""
    return cast("dict[str, object]", orjson.loads(reply.body))["data"]
