"""GET and POST /v1/members, DELETE /v1/members/{id}, and what accepting an invitation does."""

from typing import Any

import anyio
import pytest
from inline_snapshot import snapshot

from operations.setup.members import accept_invitation, open_invitations
from registry.caller import Role, Tier
from registry.errors import NotFound
from storage.access_grants import AccessGrant, find_grant, insert_grant
from storage.people import ensure_person
from tests.contract.stage import ServiceHouse
from tests.world import Credentials

MEMBERS = "/v1/members"
WEEK = 7 * 86_400
Json = dict[str, Any]


async def ask(house: ServiceHouse, who: Credentials, method: str, path: str = MEMBERS, **body: Any) -> tuple[int, Json]:
    async with house.world.client(who.secret) as http:
        answer = await http.request(method, path, json=body or None)
    return answer.status_code, answer.json()


async def invited(house: ServiceHouse, who: Credentials, email: str = "Bo@Example.com", **body: Any) -> Json:
    code, answer = await ask(house, who, "POST", email=email, **body)
    assert code == 201, answer
    return answer


async def accepted(house: ServiceHouse, invitation: str, address: str) -> str:
    """The person, who has signed in with the address."""
    store, now, id = house.world.store, house.world.clock.now(), house.world.ids.new("usr_")
    person = await store.write(ensure_person, address=address, id=id, now=now)
    await store.write(accept_invitation, invitation=invitation, person=person, address=address, ids=house.world.ids, now=now)
    return person


async def listed(house: ServiceHouse, who: Credentials) -> list[tuple[str, str, str]]:
    code, body = await ask(house, who, "GET")
    assert code == 200
    return [(row["id"], row["role"], row["status"]) for row in body["data"]]


async def test_somebody_is_invited_by_mail_and_becomes_a_member(house: ServiceHouse) -> None:
    admin = await house.world.caller(Tier.FREE)
    answer = await invited(house, admin, role="admin")
    assert answer == snapshot(
        {
            "id": "ivt_01mcckg2g0000000000000000a",
            "object": "member",
            "email": "bo@example.com",
            "name": None,
            "role": "admin",
            "status": "invited",
            "created_at": "2027-01-15T12:00:00Z",
        }
    )
    letters = await house.world.letters()
    assert [(letter.to, letter.subject) for letter in letters] == snapshot([("bo@example.com", "You are invited to join an organisation")])
    assert letters[0].text == snapshot("""\
You are invited to join the organisation

    Reseller

as an admin at https://reseller.test.

Sign in with this e-mail address and accept within 7 days:

https://reseller.test/auth/invitations

If you do not know them, ignore this mail: nothing happens.
""")
    assert await listed(house, admin) == [(admin.person, "admin", "active"), (answer["id"], "admin", "invited")]
    store, now = house.world.store, house.world.clock.now()
    waiting = await store.read(open_invitations, address="BO@example.com", now=now)
    assert [(one.id, one.organisation_id, one.organisation_name, one.role, one.expires_at) for one in waiting] == [
        (answer["id"], admin.organisation, "Reseller", "admin", now + WEEK)
    ]
    person = await accepted(house, answer["id"], "bo@example.com")
    assert await listed(house, admin) == [(person, "admin", "active"), (admin.person, "admin", "active")]
    assert await store.read(open_invitations, address="bo@example.com", now=now) == []


async def test_an_invitation_is_for_its_address_for_a_week_and_once(house: ServiceHouse) -> None:
    admin = await house.world.caller(Tier.FREE)
    answer = await invited(house, admin)
    with pytest.raises(NotFound):
        await accepted(house, answer["id"], "eve@example.com")
    await accepted(house, answer["id"], "bo@example.com")
    with pytest.raises(NotFound):
        await accepted(house, answer["id"], "bo@example.com")
    late = await invited(house, admin, "late@example.com")
    house.world.clock.advance(WEEK)
    assert late["id"] not in [id for id, _, _ in await listed(house, admin)]
    with pytest.raises(NotFound):
        await accepted(house, late["id"], "late@example.com")


async def test_inviting_again_renews(house: ServiceHouse) -> None:
    admin = await house.world.caller(Tier.FREE)
    first = await invited(house, admin)
    assert len(await house.world.letters()) == 1
    house.world.clock.advance(WEEK - 1)
    again = await invited(house, admin, role="admin")
    assert (again["id"], again["role"]) == (first["id"], "admin")
    assert len(await house.world.letters()) == 2
    house.world.clock.advance(WEEK - 1)
    assert await listed(house, admin) == [(admin.person, "admin", "active"), (first["id"], "admin", "invited")]


async def test_a_withdrawn_invitation_is_gone(house: ServiceHouse) -> None:
    admin = await house.world.caller(Tier.FREE)
    answer = await invited(house, admin)
    assert await ask(house, admin, "DELETE", f"{MEMBERS}/{answer['id']}") == (
        200,
        {"id": answer["id"], "object": "member", "deleted": True},
    )
    with pytest.raises(NotFound):
        await accepted(house, answer["id"], "bo@example.com")
    assert (await ask(house, admin, "DELETE", f"{MEMBERS}/{answer['id']}"))[0] == 404


async def test_a_member_is_not_invited_again(house: ServiceHouse) -> None:
    admin = await house.world.caller(Tier.FREE)
    person = await accepted(house, (await invited(house, admin))["id"], "bo@example.com")
    code, same = await ask(house, admin, "POST", email="BO@example.com")
    assert (code, same["code"], same["param"], "hint" in same) == (409, "already_member", "email", False)
    code, other = await ask(house, admin, "POST", email="bo@example.com", role="admin")
    assert (code, other["hint"]) == (409, f"To change the role, remove {person} and invite the address again")
    assert len(await house.world.letters()) == 1


async def test_an_answer_does_not_tell_who_has_an_account(house: ServiceHouse) -> None:
    admin, other = await house.world.caller(Tier.FREE), await house.world.caller(Tier.FREE)
    await accepted(house, (await invited(house, other))["id"], "bo@example.com")
    known, unknown = await invited(house, admin), await invited(house, admin, "ba@example.com")
    drop = ("id", "email")
    assert {k: v for k, v in known.items() if k not in drop} == {k: v for k, v in unknown.items() if k not in drop}


@pytest.mark.parametrize("email", ["", "no address", "a@b\r\nBcc: eve@example.com", "Bo <bo@example.com>", None, 5, "x" * 250 + "@b.se"])
async def test_what_is_no_address_is_refused(house: ServiceHouse, email: Any) -> None:
    admin = await house.world.caller(Tier.FREE)
    code, body = await ask(house, admin, "POST", email=email)
    assert (code, body["param"]) == (400, "email")
    assert await house.world.letters() == []


async def test_the_name_in_the_mail_is_one_plain_line(house: ServiceHouse) -> None:
    organisation = await house.world.organisation(Tier.FREE, name="Acme\r\nBcc: all\x00\u202e\u2028" + "x" * 300)
    admin = await house.world.caller(organisation=organisation)
    await invited(house, admin)
    text = (await house.world.letters())[0].text
    assert f"\n    Acme Bcc: all {'x' * 66}\n" in text
    assert not any(mark in text for mark in ("\r", "\x00", "\u202e", "\u2028"))


async def test_an_organisation_sends_so_many_mails_a_day(house: ServiceHouse) -> None:
    admin = await house.world.caller(Tier.PRO)
    for _ in range(3):
        await invited(house, admin)
    code, body = await ask(house, admin, "POST", email="bo@example.com")
    assert (code, body["code"], body["limit"]) == (429, "rate_limited", 3)
    for number in range(47):
        await invited(house, admin, f"n{number}@example.com")
    code, body = await ask(house, admin, "POST", email="one-more@example.com")
    assert (code, body["limit"], body["reset_at"]) == (429, 50, "2027-01-16T00:00:00Z")
    assert len(await house.world.letters()) == 50
    house.world.clock.advance(86_400)
    await invited(house, admin, "one-more@example.com")


async def test_a_removed_member_has_nothing_left_here(house: ServiceHouse) -> None:
    world = house.world
    admin, elsewhere = await world.caller(Tier.PRO), await world.caller(Tier.PRO)
    gone = await world.caller(organisation=admin.organisation, role=Role.ADMIN)
    await world.join(gone.person, elsewhere.organisation, Role.MEMBER)
    other_key = (await world.key(gone.person, elsewhere.organisation))[1]
    now = world.clock.now()
    for id, organisation in (("gnt_here", admin.organisation), ("gnt_there", elsewhere.organisation)):
        await world.store.write(insert_grant, AccessGrant(id, gone.person, organisation, "cli", "CLI", "read", "r", now, now + 1000))
    invitation = await invited(house, gone)
    assert (await ask(house, admin, "DELETE", f"{MEMBERS}/{gone.person}"))[0] == 200
    assert (await ask(house, gone, "GET"))[0] == 401
    assert await world.store.read(find_grant, grant="gnt_here", now=now) is None
    assert await world.store.read(find_grant, grant="gnt_there", now=now) is not None
    assert await listed(house, admin) == [(admin.person, "admin", "active")]
    assert invitation["id"] not in str(await listed(house, admin))
    assert (await ask(house, Credentials("", gone.person, "", other_key), "GET"))[0] == 200
    await world.join(gone.person, admin.organisation, Role.MEMBER)
    assert (await ask(house, gone, "GET"))[0] == 401  # old keys do not come back


async def test_the_last_admin_stays(house: ServiceHouse) -> None:
    admin = await house.world.caller(Tier.FREE)
    member = await house.world.caller(organisation=admin.organisation, role=Role.MEMBER)
    code, body = await ask(house, admin, "DELETE", f"{MEMBERS}/{admin.person}")
    assert (code, body["code"], body["param"]) == (409, "last_admin", "id")
    assert (await ask(house, admin, "DELETE", f"{MEMBERS}/{member.person}"))[0] == 200
    assert (await ask(house, admin, "GET"))[0] == 200


async def test_an_accepted_invitation_demotes_nobody(house: ServiceHouse) -> None:
    admin = await house.world.caller(Tier.FREE)
    answer = await invited(house, admin, "ada@example.com", role="member")
    store, now = house.world.store, house.world.clock.now()
    await store.write(
        accept_invitation, invitation=answer["id"], person=admin.person, address="ada@example.com", ids=house.world.ids, now=now
    )
    assert await listed(house, admin) == [(admin.person, "admin", "active")]


async def test_of_two_admins_who_remove_each_other_one_stays(house: ServiceHouse) -> None:
    one = await house.world.caller(Tier.PRO)
    two = await house.world.caller(organisation=one.organisation)
    codes: list[int] = []

    async def remove(who: Credentials, whom: Credentials) -> None:
        codes.append((await ask(house, who, "DELETE", f"{MEMBERS}/{whom.person}"))[0])

    async with anyio.create_task_group() as group:
        group.start_soon(remove, one, two)
        group.start_soon(remove, two, one)
    assert sorted(codes) in ([200, 401], [200, 409])
    remaining = [await ask(house, who, "GET") for who in (one, two)]
    assert sorted(code for code, _ in remaining) == [200, 401]


@pytest.mark.long
async def test_strangers_and_unknown_ids_are_not_found(house: ServiceHouse) -> None:
    admin, stranger = await house.world.caller(Tier.FREE), await house.world.caller(Tier.FREE)
    theirs = await invited(house, stranger)
    answers = [await ask(house, admin, "DELETE", f"{MEMBERS}/{id}") for id in (stranger.person, theirs["id"], "usr_none", "x")]
    assert {(code, body["error"], body["hint"]) for code, body in answers} == {
        (404, "Your organisation has no member and no invitation with this id", "GET /v1/members shows the ids of both")
    }
    assert len(await listed(house, stranger)) == 2


async def test_the_list_has_pages(house: ServiceHouse) -> None:
    admin = await house.world.caller(Tier.FREE)
    await invited(house, admin)
    await invited(house, admin, "ba@example.com")
    code, first = await ask(house, admin, "GET", f"{MEMBERS}?limit=2")
    last = first["data"][-1]["id"]
    _, second = await ask(house, admin, "GET", f"{MEMBERS}?limit=2&starting_after={last}")
    assert (code, first["has_more"], second["has_more"]) == (200, True, False)
    assert [row["email"] for row in first["data"] + second["data"]] == [None, "ba@example.com", "bo@example.com"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Your account is locked: https://evil.example/login", "Your account is locked: https: //evil. example/login"),
        ("www.evil.example", "www. evil. example"),
        ("http://2130706433/", "http: //2130706433/"),
        ("evil\u3002example write to a@evil\uff0eexample", "evil\u3002 example write to a@evil\uff0e example"),
        ("St. Gallen Mobil A.G., No. 1", "St. Gallen Mobil A. G., No. 1"),
        ("Acme \U000e0068\u200b\u2063Inc", "Acme Inc"),
    ],
)
async def test_the_name_in_the_mail_is_no_link(house: ServiceHouse, name: str, shown: str) -> None:
    admin = await house.world.caller(organisation=await house.world.organisation(Tier.FREE, name=name))
    await invited(house, admin)
    assert (await house.world.letters())[0].text.splitlines()[2] == f"    {shown}"


async def test_a_mailbox_gets_so_many_mails_a_day_from_all_organisations_together(house: ServiceHouse) -> None:
    admins = [await house.world.caller(Tier.FREE) for _ in range(4)]
    spellings = ["bo@example.com", "bo+work@example.com", "BO+2@example.com"]
    answers = [await invited(house, admin, address) for admin in admins for address in spellings]
    assert len(answers) == 12 and len(await house.world.letters()) == 10
    store, now = house.world.store, house.world.clock.now()
    assert len(await store.read(open_invitations, address="bo@example.com", now=now)) == 4  # the invitation is there, mailed or not
    await invited(house, admins[0], "bob@example.com")
    house.world.clock.advance(86_400)
    await invited(house, admins[0], "bo@example.com")
    assert len(await house.world.letters()) == 12
