"""Judging lines from the model: how each is supplied and what is wrong with it, made of stored facts, without a call of its own."""

from collections.abc import Sequence
from typing import NamedTuple

import anyio.lowlevel

from operations.deps import Deps
from operations.fleet.wire_rows import line_supply_at, stored_packages
from operations.upstream.connection import Upstream
from storage.engine.sql import Connection
from storage.fleet_judgements import JudgedLine, LineJudgement, lines_to_judge, numbered_lines_to_judge, record_judgements
from storage.fleet_packages import FleetPackageRow, packages_of_line
from storage.fleets import FleetState

JUDGED_AT_ONCE = 40


class LineMaterial(NamedTuple):
    """What is stored of a line."""

    line: JudgedLine
    packages: list[FleetPackageRow]


def read_material(connection: Connection, *, fleet: int, now: float, most: int) -> list[LineMaterial]:
    """What is stored of at most `most` lines that are to be judged at `now`, Unix seconds."""
    return material_of(connection, fleet, lines_to_judge(connection, fleet=fleet, now=now, most=most))


def read_numbered_material(connection: Connection, *, fleet: int, numbers: Sequence[int]) -> list[LineMaterial]:
    """What is stored of the lines with these subscriber ids."""
    return material_of(connection, fleet, numbered_lines_to_judge(connection, fleet=fleet, numbers=numbers))


def material_of(connection: Connection, fleet: int, lines: Sequence[JudgedLine]) -> list[LineMaterial]:
    return [LineMaterial(line, packages_of_line(connection, fleet=fleet, subscriber_id=line.subscriber_id)) for line in lines]


async def judge_lines(deps: Deps, fleet: FleetState, upstream: Upstream, numbers: Sequence[int] | None = None) -> int:
    """Judges the lines with these subscriber ids, or some that are due; how many they were. Waits for the database."""
    now = deps.clock.now()
    if numbers is None:
        found = await deps.store.read(read_material, fleet=fleet.id, now=now, most=JUDGED_AT_ONCE)
    else:
        found = await deps.store.read(read_numbered_material, fleet=fleet.id, numbers=numbers)
    judgements: list[LineJudgement] = []
    for each in found:
        judgements.append(judge_line(each, now))
        await anyio.lowlevel.checkpoint()
    if judgements:
        await deps.store.write(record_judgements, fleet=fleet.id, judgements=judgements, now=now)
    return len(found)


def judge_line(found: LineMaterial, now: float) -> LineJudgement:
    """What is found of a line at `now`, Unix seconds."""
    supply = line_supply_at(stored_packages(found.packages), now)
    line = found.line
    return LineJudgement(line.subscriber_id, line.version, *supply[:4], supply.changes, ())
