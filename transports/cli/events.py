"""`reseller events tail`: see an organisation's events as they happen."""

import sys
from typing import Annotated

import orjson
import typer

from operations.services.webhooks.event_body import Event
from registry.policy import stamp
from transports.cli.door import Data, Key, Org, Url, Where
from transports.cli.failure import Failure
from transports.cli.following import Count, Every, Following, Intent, Last, Types, chosen_types, follow, until_interrupted
from transports.cli.render import cell
from transports.cli.terminal_text import shown_on

events_app = typer.Typer(no_args_is_help=True, help="Follow what happens.")
SHOWN_FIRST = ("intent", "iccid", "plan")


@events_app.callback()
def events() -> None:
    """Follow what happens."""


@events_app.command("tail")
def tail(
    from_start: Annotated[bool, typer.Option("--from-start", help="Begin with the first event there is; 20 events take a call.")] = False,
    last: Last = 0,
    intent: Intent = None,
    type: Types = None,
    every: Every = 1.0,
    count: Count = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line on a terminal too.")] = False,
    url: Url = None,
    key: Key = None,
    org: Org = None,
    data: Data = None,
) -> None:
    """Print events as they happen: a line each on a terminal, JSON lines in a pipe. Ctrl-C ends.

    None is missed and none comes twice, also when the server is restarted meanwhile or asks to wait.
    """
    if from_start and last:
        raise Failure("--last: is contained in --from-start; leave one of them out")
    following = Following(intent, chosen_types(type), None if from_start else last, every, count)
    for_programs = as_json or not sys.stdout.isatty()

    async def take(event: Event) -> None:
        print_event(event, for_programs=for_programs)

    until_interrupted(follow(Where(url, key, org, data), following, take))


def print_event(event: Event, *, for_programs: bool) -> None:
    """One line, at once: whoever reads a pipe waits for it."""
    sys.stdout.write(shown_on(sys.stdout, orjson.dumps(event).decode() if for_programs else line(event)) + "\n")
    sys.stdout.flush()


def line(event: Event) -> str:
    """When, what, whose; then what else the event says."""
    about = event["data"]
    first = [about.get(name) or "-" for name in SHOWN_FIRST]
    rest = [f"{name}={cell(value)}" for name, value in about.items() if name not in SHOWN_FIRST and value is not None]
    return "  ".join([stamp(event["created"]), cell(event["type"]).ljust(23), *map(cell, first), *rest])
