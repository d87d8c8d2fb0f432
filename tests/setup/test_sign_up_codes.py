"""Codes that sign people in: `begin_sign_in` and `finish_sign_in`, which the service's own pages call."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import anyio
import pytest
import sqlalchemy as sa
from inline_snapshot import snapshot

from operations.people.verifications import begin_sign_in, finish_sign_in
from registry.errors import BadRequest, QuotaExceeded
from storage.engine.sql import Command, Connection, Statement
from storage.invitations import InvitationTable
from storage.people import find_by_address
from tests.setup.signing_up import ADA, asking, code_line, open_office, other_than, signed_up
from tests.stage import opened, opened_on_both
from tests.world import World

INVITATION = InvitationTable.table
INVITE = Command(sa.insert(INVITATION).values({column.name: sa.bindparam(column.name) for column in INVITATION.c}))


@asynccontextmanager
async def open_to_ada(folder: Path, url: str | None = None) -> AsyncGenerator[World]:
    """A service where Ada has signed up."""
    async with open_office(folder, url) as world:
        async with asking(world, "203.0.113.1") as http:
            await signed_up(world, http)
        yield world


world = opened(open_to_ada)
either = opened_on_both(open_to_ada)


async def begin(world: World, address: str = ADA, client: str = "192.0.2.1", browser: str | None = None) -> str:
    return await begin_sign_in(world.pipeline.deps, address=address, client=client, now=world.clock.now(), browser=browser)


async def limit_of(world: World, address: str = ADA, client: str = "192.0.2.1", browser: str | None = None) -> int:
    """The limit that refuses one more."""
    with pytest.raises(QuotaExceeded) as refused:
        await begin(world, address, client, browser)
    assert (refused.value.error_code, refused.value.headers["Retry-After"]) == ("rate_limited", "3600")
    return cast(int, refused.value.fields()["limit"])


async def finish(world: World, token: str, code: str) -> str:
    return await finish_sign_in(world.pipeline.deps, token=token, code=code, now=world.clock.now())


async def ada(world: World) -> str:
    person = await world.store.read(find_by_address, address=ADA)
    assert person is not None
    return person


async def test_the_mailed_code_says_who_it_is_once(world: World) -> None:
    token = await begin(world, "Ada@FJORD.example")
    letter = (await world.letters())[-1]
    assert (letter.to, letter.subject) == (ADA, "Your code to sign in")
    assert letter.text.replace(code_line(letter), "CODE") == snapshot("""\
Somebody, probably you, is signing in at https://reseller.test with this e-mail address. The code is

CODE

It is good for 10 minutes and works once. It works only on the page, and in the browser, that asked for it; no one else has a use for it.

If it was not you, ignore this mail: without the code nothing happens. Nobody of ours will ask you for it.
""")
    with pytest.raises(BadRequest) as wrong:
        await finish(world, token, other_than(code_line(letter)))
    assert (wrong.value.error_code, wrong.value.param) == ("form_code_incorrect", "code")
    assert await finish(world, token, code_line(letter)) == await ada(world)
    with pytest.raises(BadRequest) as used:
        await finish(world, token, code_line(letter))
    assert used.value.body("") == wrong.value.body("")


async def test_of_two_who_finish_at_once_one_is_signed_in(either: World) -> None:
    token = await begin(either)
    code = code_line((await either.letters())[-1])
    people: list[str] = []

    async def once() -> None:
        try:
            people.append(await finish(either, token, code))
        except BadRequest as refused:
            assert refused.error_code == "form_code_incorrect"

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(once)
    assert people == [await ada(either)]


async def test_an_unknown_address_gets_a_mail_without_a_code_and_the_same_work_is_done(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    text = Statement.text
    monkeypatch.setattr(Statement, "text", lambda self, dialect: (found := text(self, dialect), ran.append(found.sql))[0])
    work: list[tuple[int, tuple[str, ...]]] = []
    for address in (ADA, "nobody@x.example"):
        ran.clear()
        token = await begin(world, address)
        work.append((len(token), tuple(ran)))
    monkeypatch.undo()
    assert work[0] == work[1]
    known, unknown = (await world.letters())[-2:]
    assert (known.to, unknown.to, unknown.subject) == (ADA, "nobody@x.example", "You have no account yet")
    assert unknown.text == snapshot("""\
Somebody, probably you, wanted to sign in at https://reseller.test with this e-mail address, and no account has it.

To make one, sign up:

https://reseller.test/auth/sign-up

Or sign in with the address that you signed up with. If it was not you, ignore this mail: nothing happens.
""")
    for guess in ("000000", "123456", code_line(known)):
        with pytest.raises(BadRequest):
            await finish(world, token, guess)
    assert await world.store.read(find_by_address, address="nobody@x.example") is None


async def invite(world: World, address: str) -> None:
    now, organisation = world.clock.now(), await world.organisation()

    def write(connection: Connection) -> None:
        connection.run(
            INVITE,
            id="inv_1",
            digest=b"x" * 32,
            organisation_id=organisation,
            address=address,
            role="member",
            invited_by="usr_1",
            created=now,
            expires_at=now + 1000,
        )

    await world.store.write(write)


async def test_somebody_who_is_invited_becomes_a_person_by_signing_in(either: World) -> None:
    await invite(either, "new@x.example")
    tokens = [await begin(either, "new@x.example", f"192.0.2.{number}") for number in range(2)]
    codes = [code_line(letter) for letter in (await either.letters())[-2:]]
    people: list[str] = []

    async def once(token: str, code: str) -> None:
        people.append(await finish(either, token, code))

    async with anyio.create_task_group() as tasks:
        for token, code in zip(tokens, codes, strict=True):
            tasks.start_soon(once, token, code)
    assert people == [await either.store.read(find_by_address, address="new@x.example")] * 2


async def test_an_invitation_that_has_expired_invites_nobody(world: World) -> None:
    await invite(world, "late@x.example")
    world.clock.advance(1000)
    await begin(world, "late@x.example")
    assert (await world.letters())[-1].subject == "You have no account yet"


async def test_who_asks_for_codes_for_another_address_keeps_nobody_out_who_is_elsewhere(either: World) -> None:
    for _ in range(5):
        await begin(either, client="192.0.2.66")
    assert await limit_of(either, client="192.0.2.66") == 5
    assert await limit_of(either, "Ada@FJORD.example", "192.0.2.66") == 5, "another spelling of the same address"
    await begin(either, client="192.0.2.1")
    await begin(either, "b@x.example", "192.0.2.66")
    either.clock.advance(3600)
    await begin(either, client="192.0.2.66")


async def test_a_network_asks_for_thirty_codes_an_hour(world: World) -> None:
    for number in range(30):
        await begin(world, f"a{number}@x.example", f"2001:db8::{number}")
    assert await limit_of(world, "a30@x.example", "2001:db8::ffff") == 30
    await begin(world, "a30@x.example", "2001:db8:0:1::1")


async def test_strangers_in_many_networks_have_twenty_mails_an_hour_sent_to_one_mailbox(world: World) -> None:
    for number in range(20):
        await begin(world, "ada+x@fjord.example" if number % 2 else ADA, f"198.51.100.{number}")
    assert await limit_of(world, client="192.0.2.1") == 20
    assert await limit_of(world, "ada+another@fjord.example", "192.0.2.1") == 20
    assert len(await world.letters()) == 21, "one was of the sign-up"
    await begin(world, "bo@fjord.example", "192.0.2.1")


async def test_a_browser_that_is_known_for_the_address_has_codes_of_its_own(either: World) -> None:
    for number in range(20):
        await begin(either, client=f"198.51.100.{number}")
    for number in range(29):
        await begin(either, f"a{number}@x.example", "198.51.100.0")
    for _ in range(5):
        await begin(either, client="198.51.100.0", browser="hers")
    assert await limit_of(either, browser="hers") == 5
    await begin(either, browser="her other one")
    await begin(either, "b@x.example", browser="hers")


async def test_wrong_guesses_end_the_request_that_they_were_made_for_alone(either: World) -> None:
    hers = await begin(either)
    code = code_line((await either.letters())[-1])
    theirs = await begin(either, client="192.0.2.66")
    for number in range(1, 6):
        with pytest.raises(BadRequest):
            await finish(either, theirs, other_than(code, number))
    with pytest.raises(BadRequest):
        await finish(either, theirs, code)
    newer = await begin(either)
    newest = code_line((await either.letters())[-1])
    assert await finish(either, hers, code) == await ada(either), "a later request does not end an earlier one"
    assert await finish(either, newer, newest) == await ada(either)


async def test_a_code_is_worth_nothing_to_whoever_did_not_ask_for_it(world: World) -> None:
    hers = await begin(world)
    code = code_line((await world.letters())[-1])
    theirs = await begin(world, client="192.0.2.66")
    with pytest.raises(BadRequest):
        await finish(world, theirs, code)
    assert await finish(world, hers, code) == await ada(world)


async def test_a_code_to_sign_in_is_eight_characters_of_which_none_looks_like_another(world: World) -> None:
    found: set[str] = set()
    for number in range(40):
        token = await begin(world, client=f"198.51.100.{number % 4}")
        code = code_line((await world.letters())[-1])
        found |= set(code)
        typed = code.lower().replace("-", " " * (number % 3)).replace("1", "l" if number % 2 else "i").replace("0", "o")
        assert await finish(world, token, f" {typed}") == await ada(world)
        world.clock.advance(900)
    assert found <= set("0123456789ABCDEFGHJKMNPQRSTVWXYZ-") and len(found) > 20


async def test_a_code_to_sign_in_is_worth_nothing_after_ten_minutes(world: World) -> None:
    late = await begin(world)
    code = code_line((await world.letters())[-1])
    world.clock.advance(600)
    with pytest.raises(BadRequest):
        await finish(world, late, code)


async def test_what_is_no_address_is_named(world: World) -> None:
    with pytest.raises(BadRequest) as refused:
        await begin(world, "ada at fjord")
    assert refused.value.body("") == snapshot(
        {
            "error": "email: must be one e-mail address such as ada@example.com, without a name and of at most 254 characters",
            "code": "invalid_request",
            "request_id": "",
            "param": "email",
            "hint": "Check it for typing errors",
        }
    )
