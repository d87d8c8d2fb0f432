"""`python3 ./run simulate --seeds N [--from S] [--seed S] [--planted]`: many episodes; a failing seed is printed with its replay."""

import argparse
import logging
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from tests.simulation import planted
from tests.simulation.episode import Episode, EpisodeStage, Verdict, build_stage, run_episode

KNOWN = Path(__file__).resolve().parent.parent / "seeds.txt"
CHUNK = 50
SHOWN = 20


def known_seeds() -> list[int]:
    """Seeds that failed once; they run first for ever."""
    lines = KNOWN.read_text().splitlines() if KNOWN.exists() else []
    return [int(line.split()[0]) for line in lines if line.strip() and not line.startswith("#")]


def run_chunk(seeds: list[int]) -> list[Verdict]:
    """Episodes of one OS process; only those that failed say more than that they ran."""
    stage = stage_of_process()
    return [run_episode(stage, seed) for seed in seeds]


_STAGES: list[EpisodeStage] = []


def stage_of_process() -> EpisodeStage:
    """Prepared once per OS process: the pool's workers keep it between chunks."""
    if not _STAGES:
        logging.getLogger("clients.ocs").setLevel(logging.ERROR)  # garbage is ordered here
        _STAGES.append(build_stage())
    return _STAGES[0]


def chunks(seeds: Iterator[int]) -> Iterator[list[int]]:
    while chunk := list(islice(seeds, CHUNK)):
        yield chunk


def run_many(seeds: Iterator[int], cores: int) -> Iterator[Verdict]:
    if cores == 1:
        for chunk in chunks(seeds):
            yield from run_chunk(chunk)
        return
    with multiprocessing.get_context("spawn").Pool(cores) as pool:
        for verdicts in pool.imap(run_chunk, chunks(seeds)):
            yield from verdicts


def remember(seeds: list[int]) -> None:
    """Failing seeds are kept for ever."""
    new = [seed for seed in seeds if seed not in known_seeds()]
    with KNOWN.open("a") as file:
        file.writelines(f"{seed}\n" for seed in new)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def show(verdict: Verdict) -> None:
    say(f"seed {verdict.seed} FAILED; replay it with: python3 ./run simulate --seed {verdict.seed}")
    for line in verdict.broken[:SHOWN]:
        say(f"    {line}")


def replay(seed: int) -> int:
    """One episode, told from beginning to end."""
    told: list[str] = []
    verdict = run_episode(stage_of_process(), seed, lambda episode: tell(episode, told))
    for line in told:
        say(line)
    say(f"seed {seed}: {verdict.calls} calls, {verdict.seconds:.1f} virtual s, history {verdict.digest}")
    for line in verdict.broken:
        say(f"BROKEN {line}")
    return int(bool(verdict.broken))


def tell(episode: Episode, told: list[str]) -> None:
    """What happened, in order: the clients' history and the upstream's own log."""
    lines = [(r.at, f"{r.kind:<8} #{r.call} {r.key.key} {r.operation} {r.detail}") for r in episode.history.records]
    lines += [
        (d.at, f"UPSTREAM {d.method} #{d.by} {d.template} iccid={d.iccid} {d.fault or ''} code={d.code}") for d in episode.dispatches()
    ]
    told += [f"{at:12.3f}  {text}" for at, text in sorted(lines, key=lambda line: line[0])]
    told += episode.outside.reports


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="run simulate", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000, help="how many episodes")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed")
    parser.add_argument("--seed", type=int, help="replay this one, and tell what happens")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--stop", action="store_true", help="end at the first seed that fails")
    parser.add_argument("--fresh", action="store_true", help="do not run the seeds of tests/seeds.txt first")
    parser.add_argument("--planted", action="store_true", help="show that the simulation finds each bug of tests/simulation/planted")
    parser.add_argument("--forget", action="store_true", help="do not keep failing seeds in tests/seeds.txt")
    given = parser.parse_args(arguments)
    if given.seed is not None:
        return replay(given.seed)
    if given.planted:
        return planted.run(given.cores)
    known = [] if given.fresh else known_seeds()
    seeds = [*known, *range(given.first, given.first + given.seeds)]
    started, failed, calls, ran = time.perf_counter(), list[int](), 0, 0
    for verdict in run_many(iter(seeds), given.cores):
        ran, calls = ran + 1, calls + verdict.calls
        if verdict.broken:
            failed.append(verdict.seed)
            show(verdict)
            if given.stop:
                break
        if ran % 5000 == 0:
            say(f"{ran} of {len(seeds)} episodes, {len(failed)} failed, {ran / (time.perf_counter() - started):.0f} per second")
    spent = time.perf_counter() - started
    last = given.first + given.seeds - 1
    say(f"{ran} episodes (seeds {given.first} to {last}, {len(known)} known ones first), {calls} calls, {len(failed)} failed")
    say(f"{spent:.1f} s, {ran / spent:.0f} episodes per second on {given.cores} cores")
    if failed and not given.forget:
        remember(failed)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
