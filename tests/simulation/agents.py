"""Agents: programs whose keys may make only so much money due in a UTC day, and the judge of what they made due."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from operations.secret_tokens import new_api_key
from registry.caller import Money, Restrictions, SpendLimits
from storage.api_keys import insert_key, write_restrictions
from storage.engine.sql import Connection
from tests.harness.history import History, Key, Record
from tests.harness.invariants import LIMIT_REACHED
from tests.network_facts import DRAW
from tests.simulation.clock import SimIds
from tests.simulation.provider import Dispatch
from tests.simulation.provider_rows import TEMPLATE_BODY

CURRENCY = "EUR"
ESIM_CENTS = round(100 * float(TEMPLATE_BODY["cost"]))
"""What one eSIM of any template makes due."""
DAILY_ESIMS = 2
"""How many an agent may have in a day: fewer than some episodes ask for."""
MIDNIGHT_SECONDS = 1800.0
"""So near to midnight nobody outside knows in which day a call began: the clocks of processes differ."""
DAY_SECONDS = 86_400.0
COUNTED = "select credential, period, used from spending where subject = ?"


class LimitedAgent(NamedTuple):
    """A key with a limit, of an organisation."""

    organisation: str
    key: str
    secret: str
    limit: int


def hire_agent(connection: Connection, *, ids: SimIds, organisation: str, now: float) -> LimitedAgent:
    """A key of the organisation's one person, with a limit of money a day."""
    found = connection.driver.execute("select person_id from api_key where organisation_id = :owner", {"owner": organisation})
    ((person,),) = found.fetchall()
    key, id, limit = new_api_key(ids), ids.new("key_"), ESIM_CENTS * DAILY_ESIMS
    restrictions = write_restrictions(Restrictions(limits=(SpendLimits(per_day=Money(limit, CURRENCY)),)))
    insert_key(
        connection,
        id=id,
        digest=key.digest,
        prefix=key.prefix,
        organisation=organisation,
        person=str(person),
        name="agent",
        now=now,
        restrictions=restrictions,
    )
    return LimitedAgent(organisation, id, key.secret, limit)


class AgentEnding(NamedTuple):
    """What agents made due, as the upstream says, and what was counted. By organisation and UTC day, in cents."""

    due: Counter[tuple[str, str]]
    near_midnight: Counter[str]
    """What was made due at a time that two days may claim."""
    counted: Counter[tuple[str, str]]


def read_agents(
    agents: Mapping[str, LimitedAgent], history: History, log: Sequence[Dispatch], rows: Sequence[tuple[str, str, int]]
) -> AgentEnding:
    """`rows`: what COUNTED finds."""
    due, near_midnight, counted = Counter[tuple[str, str]](), Counter[str](), Counter[tuple[str, str]]()
    for entry in log:
        key = history.of_call.get(entry.by)
        if key is None or entry.method != DRAW or entry.iccid is None:
            continue
        if min(entry.at % DAY_SECONDS, -entry.at % DAY_SECONDS) < MIDNIGHT_SECONDS:
            near_midnight[key.organisation] += ESIM_CENTS
        else:
            due[key.organisation, datetime.fromtimestamp(entry.at, UTC).strftime("%Y-%m-%d")] += ESIM_CENTS
    owners = {agent.key: agent.organisation for agent in agents.values()}
    for credential, period, used in rows:
        if credential in owners and len(period) == len("2027-01-15"):
            counted[owners[credential], period] += used
    return AgentEnding(due, near_midnight, counted)


def broken_limits(agents: Mapping[str, LimitedAgent], ending: AgentEnding, last: Mapping[Key, Record]) -> list[str]:
    """In no day has a key made more due than its limit, all that it made due is counted, and no call is refused that fits."""
    broken = list[str]()
    for (organisation, day), cents in sorted(ending.due.items()):
        if cents > agents[organisation].limit:
            broken.append(f"{organisation}: its agent made {cents} cents due on {day}, and may {agents[organisation].limit}")
        if cents > ending.counted[organisation, day]:
            broken.append(f"{organisation}: its agent made {cents} cents due on {day}, counted are {ending.counted[organisation, day]}")
    for organisation, agent in agents.items():
        days = [cents for (owner, _), cents in ending.counted.items() if owner == organisation]
        whole = ending.near_midnight[organisation] + sum(cents for (owner, _), cents in ending.due.items() if owner == organisation)
        if any(not 0 <= cents <= agent.limit for cents in days) or whole > sum(days):
            broken.append(f"{organisation}: {whole} cents were made due, and counted are {days} of {agent.limit} a day")
        refused = [key.key for key, record in last.items() if key.organisation == organisation and record.detail == LIMIT_REACHED]
        if refused and max(days, default=0) + ESIM_CENTS <= agent.limit:
            broken.append(f"{organisation}: its agent is refused {refused}, and counted are {days} of {agent.limit} a day")
    return broken
