"""Tags of lines: an organisation's own words, by which it finds, bounds and changes many lines at once."""

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.fleet.fleet_access import OwnFleet, own_fleet, sees_all
from operations.fleet.line_selection import LineSelectionInput, SelectedLines, select_lines
from operations.upstream.connection import require_connected
from operations.vocabulary import LineTag, ListOf, LongListPage, list_page
from registry.errors import NotFound, OcsError, OrgNotConnected, Restricted, RoleRequired
from registry.operation import Example, Scope, SpendKind, operation
from storage.api_keys import guarded_tags
from storage.engine.sql import Connection, runs_in_thread
from storage.fleet_tags import count_tags_within
from storage.line_tags import MOST_TAGS_OF_LINE, TagAuthor, count_tags, remove_tag, set_tag

MOST_LINES_TAGGED = 10_000
"""Choice: so many rows keep other writers of a SQLite file waiting for a quarter of a second."""
MOST_ICCIDS_SHOWN = 100

TagRefusal = Literal["not_yours", "not_listed_yet", "ended", "too_many_tags"]
TAG_REFUSALS: dict[TagRefusal, str] = {
    "not_yours": "No lines of yours that this credential may see.",
    "not_listed_yet": "No listing has shown them yet, and only 20 of such lines are asked for at once: try again in a few minutes.",
    "ended": "END_OF_LIFE lines have no tags.",
    "too_many_tags": f"A line has at most {MOST_TAGS_OF_LINE} tags: untag_lines first.",
}


class TaggedLines(LineSelectionInput):
    """The tag, and which lines: exactly one of `iccids`, `query` and `tagged`."""

    tag: LineTag


class RefusedLines(TypedDict):
    """Lines that stay as they were."""

    reason: TagRefusal
    lines: Annotated[int, Field(description="How many")]
    iccids: Annotated[list[str], Field(description="At most 100 of them")]
    hint: str


class TagsSet(TypedDict):
    """What became of the lines."""

    tag: str
    tagged: Annotated[int, Field(description="Lines that did not have the tag, and have it now")]
    already: Annotated[int, Field(description="Lines that had it before")]
    refused: list[RefusedLines]


class TagsRemoved(TypedDict):
    """What became of the lines."""

    tag: str
    untagged: Annotated[int, Field(description="Lines that had the tag, and have it no more")]
    already: Annotated[int, Field(description="Lines that did not have it before")]
    refused: list[RefusedLines]


class TagView(TypedDict):
    """A tag. `guarded`: API keys are restricted to lines that have it, so only admins set and remove it."""

    tag: str
    lines: Annotated[int, Field(description="Lines that have it, of those that the credential may see")]
    guarded: bool


class TagWork(NamedTuple):
    """Which lines to tag or untag, and who does it."""

    selected: SelectedLines
    author: TagAuthor


async def selected_to_tag(ctx: Ctx, params: TaggedLines) -> TagWork:
    """The access rule: the lines are the caller's, and a guarded tag is for admins with unrestricted credentials. Waits for the network.

    Choice: anybody who may make keys may name a tag in a restriction, which only takes away from what the key's maker may do. The tag is
    guarded from then on, until the key ends.
    """
    await require_connected(ctx)
    guarded = await ctx.deps.store.read(guarded_tags, organisation=ctx.organisation, now=ctx.now)
    if params.tag in guarded:
        ctx.need_admin(f"Setting or removing the tag {params.tag}, to which API keys are restricted,")
    selected = await select_lines(ctx, await own_fleet(ctx, params), params, MOST_LINES_TAGGED)
    guardian = ctx.caller.is_admin and not ctx.caller.restricted
    return TagWork(selected, TagAuthor(ctx.organisation, ctx.principal, guardian, ctx.now))


@operation(
    "POST",
    "/v1/tags/{tag}/lines",
    spends=SpendKind.NOTHING,
    scope=Scope.WRITE,
    bounded=True,
    title="Tag lines",
    access=selected_to_tag,
    raises=[NotFound, Restricted, RoleRequired, OrgNotConnected, OcsError],
    examples=[
        Example(
            "Remember which lines are in the truck fleet",
            {"tag": "trucks", "iccids": ["8988303700000100286"]},
            {"tag": "trucks", "tagged": 1, "already": 0, "refused": []},
        ),
        Example(
            "Mark every line that was last seen in Norway",
            {"tag": "norway", "query": {"country": "NO"}},
            {"tag": "norway", "tagged": 4, "already": 0, "refused": []},
        ),
    ],
)
async def tag_lines(ctx: Ctx, params: TaggedLines, work: TagWork) -> TagsSet:
    """Give lines a tag: by ICCIDs, by facts as in query_fleet, or by another tag.

    query_fleet finds them by `tag` again. Give exactly one of `iccids`, `query` and `tagged`: at most 10,000 lines a call, 20 tags a line.

    Tags are yours alone: the charging system does not know them, and they change nothing about a line. A tag ends when its line leaves
    your accounts, ends for good, or goes back to stock. A tag that an API key is restricted to is guarded: only an admin with an
    unrestricted credential sets or removes it. A key that may see some lines alone tags only those.
    """
    return await ctx.settle_result(set_tag_of_lines, work=work, tag=params.tag)


@runs_in_thread
def set_tag_of_lines(connection: Connection, *, work: TagWork, tag: str) -> TagsSet:
    """The write of tag_lines, and its answer."""
    lines = work.selected.lines
    ended = [line.iccid for line in lines if line.status == "END_OF_LIFE"]
    living = {line.iccid: line.subscriber_id for line in lines if line.status != "END_OF_LIFE"}
    outcome = set_tag(connection, author=work.author, tag=tag, lines=living)
    refused = refused_lines(work.selected, ended=ended, full=outcome.full)
    return {"tag": tag, "tagged": outcome.changed, "already": outcome.already, "refused": refused}


@operation(
    "POST",
    "/v1/tags/{tag}/lines/remove",
    spends=SpendKind.NOTHING,
    scope=Scope.WRITE,
    bounded=True,
    title="Untag lines",
    access=selected_to_tag,
    raises=[NotFound, Restricted, RoleRequired, OrgNotConnected, OcsError],
    examples=[
        Example(
            "Take a line out of the truck fleet",
            {"tag": "trucks", "iccids": ["8988303700000100286"]},
            {"tag": "trucks", "untagged": 1, "already": 0, "refused": []},
        ),
        Example(
            "Take the tag from every line that has it",
            {"tag": "trucks", "tagged": "trucks"},
            {"tag": "trucks", "untagged": 12, "already": 0, "refused": []},
        ),
    ],
)
async def untag_lines(ctx: Ctx, params: TaggedLines, work: TagWork) -> TagsRemoved:
    """Take a tag from lines: from ICCIDs, by facts, or from all that have it.

    Give exactly one of `iccids`, `query` and `tagged`; `tagged` with the same tag takes it from all lines. The lines stay as they are.

    A tag that no line has any more is gone. A guarded tag, to which an API key is restricted, is taken away by an admin with an
    unrestricted credential alone. A key that may see some lines alone takes tags from those alone.
    """
    return await ctx.settle_result(remove_tag_of_lines, work=work, tag=params.tag)


@runs_in_thread
def remove_tag_of_lines(connection: Connection, *, work: TagWork, tag: str) -> TagsRemoved:
    """The write of untag_lines, and its answer."""
    iccids = [line.iccid for line in work.selected.lines]
    outcome = remove_tag(connection, author=work.author, tag=tag, iccids=iccids)
    return {"tag": tag, "untagged": outcome.changed, "already": outcome.already, "refused": refused_lines(work.selected)}


def refused_lines(selected: SelectedLines, *, ended: Sequence[str] = (), full: Sequence[str] = ()) -> list[RefusedLines]:
    """What stays as it was, and why; reasons without lines are left out."""
    found: dict[TagRefusal, Sequence[str]] = {
        "not_yours": selected.foreign,
        "not_listed_yet": selected.unlisted,
        "ended": ended,
        "too_many_tags": full,
    }
    return [
        {"reason": reason, "lines": len(iccids), "iccids": list(iccids[:MOST_ICCIDS_SHOWN]), "hint": TAG_REFUSALS[reason]}
        for reason, iccids in found.items()
        if iccids
    ]


@operation(
    "GET",
    "/v1/tags",
    upstream=True,
    bounded=True,
    title="List tags",
    access=own_fleet,
    raises=[OcsError],
    examples=[
        Example(
            "Which tags do we have?",
            {},
            {"object": "list", "data": [{"tag": "trucks", "lines": 12, "guarded": False}], "has_more": False},
        )
    ],
)
async def list_tags(ctx: Ctx, params: LongListPage, fleet: OwnFleet) -> ListOf[TagView]:
    """List the tags of your lines, each with how many lines have it.

    query_fleet with `tag` shows the lines. `guarded`: an API key is restricted to it, so only admins set or remove it.

    In the order of their letters; `starting_after` is the last tag of the page before. A credential that may see some lines alone sees the
    tags of those that have been listed, and counts them alone.
    """
    read, after, most = ctx.deps.store.read, params.starting_after or "", params.limit + 1
    if sees_all(fleet):
        found = await read(count_tags, organisation=ctx.organisation, after=after, most=most)
    else:
        found = await read(count_tags_within, fleet=fleet.state.id, bounds=fleet.bounds, after=after, most=most)
    guarded = await read(guarded_tags, organisation=ctx.organisation, now=ctx.now)
    return list_page([{"tag": each.tag, "lines": each.lines, "guarded": each.tag in guarded} for each in found], params.limit)
