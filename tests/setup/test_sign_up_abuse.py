"""Abuse case 42: floods of sign-ups, guessing codes, finding out who has an account; and what may be seen of all that."""

import hashlib
import json
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import anyio
import httpx
import pytest
import sqlalchemy as sa
from inline_snapshot import snapshot

from operations.people.verifications import begin_sign_in, finish_sign_in
from registry.errors import BadRequest
from storage.engine.sql import Query, Statement
from storage.organisations import list_organisations
from storage.verifications import VERIFICATION
from tests.registry.ledgers import AUDITED
from tests.setup.signing_up import ADA, asking, begun, code_line, open_office, other_than, sign_up, signed_up, verify, without_id
from tests.stage import opened, opened_on_both
from tests.world import World


class Tries(NamedTuple):
    """How often a code was guessed."""

    tries: int


TRIES = Query(Tries, sa.select(VERIFICATION.c.tries))


world = opened(open_office)
either = opened_on_both(open_office)


async def statuses(world: World, *asked: tuple[str, str]) -> list[int]:
    """Sign-ups by (client, address), one after the other."""
    found: list[int] = []
    for ip, email in asked:
        async with asking(world, ip) as http:
            found.append((await sign_up(http, email)).status_code)
    return found


@pytest.mark.rule("8.13")
async def test_a_flood_from_one_network_ends_after_five_an_hour(world: World) -> None:
    assert await statuses(world, *[("192.0.2.1", f"a{number}@x.example") for number in range(5)]) == [201] * 5
    async with asking(world) as http:
        refused = await sign_up(http, "a5@x.example")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "3600")
    assert without_id(refused)[1] == snapshot(
        {
            "error": "Too many sign-ups: 5 per hour are allowed here; wait 3600 s and repeat the call",
            "code": "rate_limited",
            "limit": 5,
            "used": 5,
            "reset_at": "2027-01-15T13:00:00Z",
            "upgrade_url": "https://reseller.test/upgrade",
        }
    )
    assert await statuses(world, ("192.0.2.2", "a5@x.example")) == [201]
    assert len(await world.letters()) == 6
    world.clock.advance(3599)
    assert await statuses(world, ("192.0.2.1", "a6@x.example")) == [429]
    world.clock.advance(1)
    assert await statuses(world, *[("192.0.2.1", f"b{number}@x.example") for number in range(6)]) == [201] * 5 + [429]


@pytest.mark.rule("8.13")
async def test_a_flood_of_one_address_ends_after_three_an_hour_wherever_it_comes_from(world: World) -> None:
    spellings = ["victim@x.example", "Victim@x.example", "VICTIM@X.EXAMPLE", "victim@x.example", "vIctim@x.example"]
    assert await statuses(world, *[(f"192.0.2.{number}", email) for number, email in enumerate(spellings)]) == [201] * 3 + [429] * 2
    assert [letter.to for letter in await world.letters()] == ["victim@x.example"] * 3


async def test_the_window_slides(world: World) -> None:
    asked: list[int] = []
    for _ in range(8):
        asked += await statuses(world, ("192.0.2.1", ADA))
        world.clock.advance(900)
    assert asked == [201, 201, 201, 429, 201, 201, 201, 429]


async def test_what_is_refused_is_not_counted(world: World) -> None:
    """Nobody keeps somebody else out by asking again and again, nor an address by a network that is used up."""
    assert await statuses(world, *[("192.0.2.1", ADA)] * 9) == [201] * 3 + [429] * 6
    assert await statuses(world, ("192.0.2.1", "b@x.example"), ("192.0.2.1", "c@x.example")) == [201] * 2
    assert await statuses(world, *[("192.0.2.1", "d@x.example")] * 4) == [429] * 4
    assert await statuses(world, *[("192.0.2.9", "d@x.example")] * 4) == [201] * 3 + [429]


async def test_an_ipv6_network_is_one_client_and_an_ipv4_address_in_ipv6_clothes_is_itself(world: World) -> None:
    v6 = [(f"2001:db8:1:2:{number}::1", f"a{number}@x.example") for number in range(6)]
    assert await statuses(world, *v6) == [201] * 5 + [429]
    assert await statuses(world, ("2001:db8:1:3::1", "a6@x.example")) == [201]
    mapped = [(f"::ffff:192.0.2.{number % 2}", f"b{number}@x.example") for number in range(10)]
    assert await statuses(world, *mapped) == [201] * 10
    assert await statuses(world, ("192.0.2.0", "b10@x.example"), ("::ffff:192.0.2.1", "b11@x.example")) == [429] * 2


async def by_proxy(world: World, number: int, forwarded: str, peer: str = "10.0.0.1") -> int:
    async with asking(world, peer, trusted=["10.0.0.0/8"], **{"X-Forwarded-For": forwarded}) as http:
        return (await sign_up(http, f"a{number}@x.example")).status_code


async def test_behind_a_trusted_proxy_it_is_the_client_who_is_counted_whatever_it_claims(world: World) -> None:
    claims = ["198.51.100.7", "203.0.113.9, 198.51.100.7", "nonsense, 198.51.100.7", "198.51.100.7, 10.0.0.2", "198.51.100.7:443"]
    assert [await by_proxy(world, number, claim) for number, claim in enumerate(claims)] == [201] * 5
    assert await by_proxy(world, 5, "203.0.113.10, 198.51.100.7", peer="::ffff:10.0.0.3") == 429
    assert await by_proxy(world, 6, "203.0.113.9") == 201
    assert [await by_proxy(world, number, f"[2001:db8::{number}]:443") for number in range(7, 13)] == [201] * 5 + [429]


async def test_what_somebody_claims_who_is_no_trusted_proxy_counts_for_nothing(world: World) -> None:
    asked = [await by_proxy(world, number, f"203.0.113.{number}", peer="192.0.2.66") for number in range(6)]
    assert asked == [201] * 5 + [429]


async def at_once(many: int, once: Callable[[int], Awaitable[httpx.Response]]) -> list[httpx.Response]:
    answers: list[httpx.Response] = []

    async def ask(number: int) -> None:
        answers.append(await once(number))

    async with anyio.create_task_group() as tasks:
        for number in range(many):
            tasks.start_soon(ask, number)
    return answers


async def test_of_sixteen_sign_ups_at_once_three_go_through(either: World) -> None:
    async with asking(either) as http:
        answers = await at_once(16, lambda _: sign_up(http))
    assert sorted(answer.status_code for answer in answers) == [201] * 3 + [429] * 13
    assert len(await either.letters()) == 3


async def test_a_code_is_dead_after_five_tries(world: World) -> None:
    async with asking(world) as http:
        token, code = await begun(world, http)
        for number in range(1, 5):
            assert (await verify(http, token, other_than(code, number))).status_code == 400
        fifth, right = await verify(http, token, other_than(code, 5)), await verify(http, token, code)
        assert without_id(fifth) == without_id(right)
        again = await begun(world, http)
        for number in range(1, 5):
            await verify(http, again[0], other_than(again[1], number))
        assert (await verify(http, *again)).status_code == 201


async def test_of_thirty_two_guesses_at_once_five_are_looked_at(either: World) -> None:
    async with asking(either) as http:
        token, code = await begun(either, http)
        answers = await at_once(32, lambda number: verify(http, token, other_than(code, number + 1)))
        assert {answer.status_code for answer in answers} == {400}
        assert (await verify(http, token, code)).status_code == 400
        tries = await either.store.read(lambda connection: connection.first(TRIES))
        assert tries is not None and tries.tries == 5
    assert await either.store.read(list_organisations) == []


async def test_what_cannot_be_a_code_spends_no_try(world: World) -> None:
    async with asking(world) as http:
        token, code = await begun(world, http)
        for wrong in ("12345", "1234567", "12345a", "١٢٣٤٥٦", "-12345", "+12345", "1e1000", " " * 6, "code"):
            answer = await verify(http, token, wrong)
            assert (answer.status_code, answer.json()["code"]) == (400, "form_code_incorrect")
        assert (await verify(http, token, code)).status_code == 201


async def test_a_code_is_good_for_600_seconds(world: World) -> None:
    async with asking(world) as http:
        early, late = await begun(world, http), await begun(world, http, "eve@x.example")
        world.clock.advance(599)
        assert (await verify(http, *early)).status_code == 201
        world.clock.advance(1)
        assert (await verify(http, *late)).status_code == 400


async def test_a_token_that_is_unknown_used_dead_or_old_is_answered_like_a_wrong_code(world: World) -> None:
    async with asking(world) as http:
        used, dead, old, good = [await begun(world, http, f"{name}@x.example") for name in ("used", "dead", "old", "good")]
        await verify(http, *used)
        for number in range(1, 6):
            await verify(http, dead[0], other_than(dead[1], number))
        answers = [
            await verify(http, *used),
            await verify(http, *dead),
            await verify(http, "A" * 43, "000000"),
            await verify(http, "?", "000000"),
            await verify(http, good[0], other_than(good[1])),
            await verify(http, good[0], "12"),
            await verify(http, good[0] + "A", good[1]),
        ]
        world.clock.advance(600)
        answers.append(await verify(http, *old))
    assert [without_id(answer) for answer in answers] == [without_id(answers[0])] * 8


async def test_a_code_goes_with_its_own_token_and_what_it_was_asked_for(world: World) -> None:
    async with asking(world) as http:
        ada, eve = await begun(world, http), await begun(world, http, "eve@x.example")
        assert (await verify(http, ada[0], eve[1])).status_code == 400
        deps, now = world.pipeline.deps, world.clock.now()
        with pytest.raises(BadRequest):
            await finish_sign_in(deps, token=ada[0], code=ada[1], now=now)
        assert (await verify(http, *ada)).status_code == 201
        token = await begin_sign_in(deps, address=ADA, client="192.0.2.1", now=now)
        code = code_line((await world.letters())[-1])
        assert (await verify(http, token, code)).status_code == 400


async def test_a_known_address_cannot_be_told_from_an_unknown_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async with asking(world) as http:
        await signed_up(world, http, "known@x.example")
    before = len(await world.letters())
    ran: list[str] = []
    text = Statement.text
    monkeypatch.setattr(Statement, "text", lambda self, dialect: (found := text(self, dialect), ran.append(found.sql))[0])
    seen: list[tuple[object, ...]] = []
    for email in ("known@x.example", "other@x.example"):
        ran.clear()
        async with asking(world, "192.0.2.9") as http:
            answer = await sign_up(http, email)
        headers = {name: value for name, value in answer.headers.items() if name != "request-id"}
        body = answer.json()
        seen.append((answer.status_code, headers, len(answer.content), sorted(body), body["expires_in_seconds"], tuple(ran)))
    assert seen[0] == seen[1]
    letters = (await world.letters())[before:]
    assert [letter.to for letter in letters] == ["known@x.example", "other@x.example"]
    assert len({letter.text.replace(code_line(letter), "") for letter in letters}) == 1


async def test_address_token_and_code_are_in_no_log_audit_row_or_table_in_clear(world: World, tmp_path: Path) -> None:
    async with asking(world) as http:
        token, code = await begun(world, http)
        await verify(http, token, other_than(code))
        waiting = rows_of(tmp_path)
        await verify(http, token, code)
        await sign_up(http, "waits@x.example")  # its mail is still in the queue
    await world.journal.flush()
    rows = {**waiting, **rows_of(tmp_path)}
    assert {name for name, text in rows.items() if ADA in text or "waits@x.example" in text} == {"person", "verification"}
    assert waiting["verification"].count(ADA) == 1 and hashlib.sha256(code.encode()).hexdigest() not in waiting["verification"]
    assert [name for name, text in rows.items() if token in text or f"'{code}'" in text or f'"{code}"' in text] == []
    assert rows["mail"] != "[]"
    logged = json.dumps([line._asdict() for line in world.lines], default=str)
    audited = repr(await world.store.read(lambda connection: connection.all(AUDITED)))
    assert "signup_verify" in logged and "signup_verify" in audited
    for text in (logged, audited):
        assert ADA not in text and "waits@x.example" not in text and token not in text and code not in text


def rows_of(folder: Path) -> dict[str, str]:
    """Every table of the database, as text."""
    with closing(sqlite3.connect(folder / "service.db")) as database:
        names = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
        return {name: repr(database.execute(f'select * from "{name}"').fetchall()) for name in names}
