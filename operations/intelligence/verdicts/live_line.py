"""Verdicts on a line that was read live: the same facts, by the same rules, as those that are stored of its fleet."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import anyio.to_thread

from operations.deps import Ctx
from operations.fleet.wire_rows import date_text, line_rows, package_rows, stored_packages
from operations.intelligence.diagnosis.facts import LineFacts
from operations.intelligence.diagnosis.line_days import newest_networks
from operations.intelligence.lines.fleet_lines import FleetLine
from operations.intelligence.lines.stored_use import countries_of, row_of_facts
from operations.intelligence.offers.coverage_map import CoverageMap
from operations.intelligence.offers.offers import read_offers
from operations.intelligence.verdicts.advice import LineProblem, line_problem
from operations.intelligence.verdicts.cheapest import CheapestPackages, StoredLinePlan
from operations.intelligence.verdicts.facts import (
    LineIdentity,
    RefusedSession,
    VerdictFacts,
    packages_of_rows,
    refused_of_text,
    series_of_rows,
)
from operations.intelligence.verdicts.rules import LineVerdicts, find_verdicts
from operations.upstream.connection import Upstream
from operations.upstream.signalling import LineSignalling
from registry.errors import OcsError
from storage.fleet_judgements import LinePast
from storage.fleet_lines import ListedLine

UNREAD_DAYS = "The use before {} could not be read in time: `problems` were judged by what was used since."
UNREAD_TEMPLATES = "list_package_templates did not answer: whether other packages would be cheaper was not judged."


class LiveVerdicts(NamedTuple):
    """The problems of a line, the first to mend first, and sentences on what could not be judged."""

    problems: list[LineProblem]
    unread: list[str]


class PlanSearch:
    """Whether the cheapest packages were asked for: then the catalogue is read, and they are searched for."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self) -> CheapestPackages | None:
        self.asked = True
        return None


async def judge_live_line(ctx: Ctx, upstream: Upstream, found: LineFacts) -> LiveVerdicts | None:
    """The verdicts on the line; None where its packages or its use could not be read. Waits for the network."""
    facts = live_facts(found)
    if facts is None:
        return None
    refused = refused_sessions(found.signalling)
    stored = [] if found.past is None else refused_of_text(found.past.line.radio)
    # As for the read model, refused sessions are looked at where the rest leaves it open, or did when they were asked for.
    if not stored and find_verdicts(replace(facts, line=facts.line._replace(sighted=0.0))).open:
        stored = refused
    search = PlanSearch()
    facts = replace(facts, refused=refused if stored else [], find_cheapest=search)
    judged = await anyio.to_thread.run_sync(find_verdicts, facts)
    unread: list[str] = []
    if found.days is not None and found.days.first > found.days.wanted:
        unread.append(UNREAD_DAYS.format(date_text(found.days.first)))
    if search.asked:
        try:
            plan = await read_plan(upstream, found, facts)
        except OcsError:
            unread.append(UNREAD_TEMPLATES)
        else:
            judged = await anyio.to_thread.run_sync(find_verdicts, replace(facts, find_cheapest=plan.cheapest))
    return LiveVerdicts(live_problems(judged, facts.line.iccid, found.past, ctx.now), unread)


def refused_sessions(signalling: LineSignalling | None) -> list[RefusedSession]:
    sessions = [] if signalling is None else signalling.sessions
    return [RefusedSession(one.at, *one.code) for one in sessions if one.refused and one.code is not None]


def live_facts(found: LineFacts) -> VerdictFacts | None:
    """The facts of the line, without refused sessions. Raises OcsError where a date cannot be read."""
    rows = line_rows(found.row, personal=False)
    if rows is None or found.supply is None or found.days is None:
        return None
    stored = package_rows(found.supply)
    every = packages_of_rows(stored)
    return VerdictFacts(
        now=found.now,
        line=line_identity(found, rows[0]),
        packages=[package for package in every if package.limit > 0],
        all_packages=every,
        series=series_of_rows(stored),
        usage=found.days.rows,
        refused=[],
        coverage=found.zones or CoverageMap(),
        networks=countries_of(newest_networks(found.days.networks)),
    )


def line_identity(found: LineFacts, told: ListedLine) -> LineIdentity:
    return LineIdentity(
        subscriber_id=found.row.get("subscriberId", 0),
        iccid=told.iccid,
        account_id=told.account_id,
        status=told.status,
        status_since=told.status_since,
        sim_status=told.sim_status,
        issued=told.issued,
        activated=told.activated,
        last_used=told.last_used,
        sighted=found.seen or 0.0,
        mcc=told.mcc,
        mnc=told.mnc,
        country=told.country,
        data_allowed=told.data_allowed,
        speed_limit=told.speed_limit,
        steering_list=told.steering_list,
    )


async def read_plan(upstream: Upstream, found: LineFacts, facts: VerdictFacts) -> StoredLinePlan:
    """The search for the cheapest packages of the line. Waits for the network; raises OcsError."""
    offers, rows, line = await read_offers(upstream), line_rows(found.row, personal=False), facts.line
    text = "{}" if rows is None else rows[1].facts
    told = FleetLine(line.subscriber_id, line.iccid, line.account_id, line.status, row_of_facts(text, line.iccid))
    packages = stored_packages(package_rows(found.supply or {}))
    networks = newest_networks([] if found.days is None else found.days.networks)
    return StoredLinePlan(told, facts.usage, packages, offers, networks, found.now)


def live_problems(judged: LineVerdicts, iccid: str, past: LinePast | None, now: float) -> list[LineProblem]:
    """What is told of each verdict. A problem whose beginning is not known began when the read model found it, or now."""
    opened: Mapping[str, float] = {} if past is None else {each.cause: each.opened for each in past.problems}
    return [
        line_problem(each.cause, iccid, each.found.since or opened.get(each.cause, now), each.found.money, each.found.evidence)
        for each in judged.verdicts
    ]
