"""What somebody chooses to be told by mail: their own, in one organisation, while they are a member."""

import httpx
from inline_snapshot import snapshot

from operations.ledger.event_letters import EventMails
from operations.ledger.mail_kinds import SECURITY_AND_MONEY_TYPES
from registry.caller import Role, Tier
from storage.engine.sql import Connection
from storage.members import end_membership
from tests.events.mail_stage import SUBSCRIPTIONS, MailStage

SILENT = {"*": "off"}


async def test_who_has_chosen_nothing_is_told_of_trouble_as_an_admin_and_of_nothing_as_a_member(mails: MailStage) -> None:
    admin, member = (await mails.ask("ada")).json(), (await mails.ask("cy")).json()
    assert admin == snapshot(
        {
            "object": "mail_subscriptions",
            "address": "ada@fjord.example",
            "kinds": {},
            "told": {
                "esim.issuance_unknown": "at_once",
                "order.needs_review": "at_once",
                "organisation.endpoint_disabled": "at_once",
                "organisation.balance_low": "at_once",
                "organisation.quota_exceeded": "at_once",
                "payment.dispute_opened": "at_once",
                "invoice.overdue": "at_once",
                "organisation.stock_low": "at_once",
                "organisation.quota_80": "at_once",
            },
            "digest_hour": 8,
            "timezone": "UTC",
            "language": "en",
            "changed": None,
        }
    )
    assert (member["told"], member["address"]) == ({}, "cy@fjord.example")


async def test_a_choice_is_kept_for_one_person_in_one_organisation(mails: MailStage) -> None:
    wanted = {"kinds": {"esim.*": "digest", "esim.issued": "at_once"}, "digest_hour": 7, "timezone": "Europe/Berlin", "language": "de"}
    said = await mails.choose("cy", **wanted)
    assert said == snapshot(
        {
            "object": "mail_subscriptions",
            "address": "cy@fjord.example",
            "kinds": {"esim.*": "digest", "esim.issued": "at_once"},
            "told": {
                "esim.issued": "at_once",
                "esim.first_attach": "digest",
                "esim.issuance_unknown": "digest",
                "esim.issuance_failed": "digest",
                "esim.rolled_back": "digest",
            },
            "digest_hour": 7,
            "timezone": "Europe/Berlin",
            "language": "de",
            "changed": "2026-03-01T12:00:00Z",
        }
    )
    assert (await mails.ask("cy")).json() == said
    assert (await mails.ask("bo")).json()["kinds"] == {}
    elsewhere = await mails.site.organisation(mails.people["cy"], "Elsewhere", tier=Tier.PRO)
    mails.organisation = elsewhere
    assert (await mails.ask("cy")).json()["kinds"] == {}


async def test_a_key_is_refused_since_a_choice_is_a_person_s_own(mails: MailStage) -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=mails.site.app), base_url=mails.site.base_url) as http:
        session = {"Authorization": f"Bearer {await mails.session('ada')}"}
        key = (await http.post("/v1/api-keys", json={"name": "mail"}, headers=session)).json()["secret"]
        own = {"Authorization": f"Bearer {key}"}
        answers = [await http.get(SUBSCRIPTIONS, headers=own), await http.put(SUBSCRIPTIONS, headers=own, json={"kinds": {}})]
    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(401, "unauthorized")] * 2


async def test_a_kind_that_stands_for_nothing_or_is_for_admins_is_refused_in_words_that_help(mails: MailStage) -> None:
    refusals = [
        await mails.ask("cy", "PUT", kinds={"esim.isued": "digest"}),
        await mails.ask("cy", "PUT", kinds={"organisation.*": "digest"}),
        await mails.ask("cy", "PUT", kinds={}, timezone="Europe/Berlim"),
        await mails.ask("cy", "PUT", kinds={}, digest_hour=24),
        await mails.ask("cy", "PUT", kinds={"esim.*": "sometimes"}),
    ]
    assert [(answer.status_code, answer.json()["error"], answer.json().get("hint")) for answer in refusals] == snapshot(
        [
            (
                400,
                "kinds: 'esim.isued' stands for no type of events; name one, or use * for any part of a name",
                "Did you mean esim.issued?",
            ),
            (
                400,
                "kinds: 'organisation.*' is digest, and only admins are told of organisation.upstream_connected",
                "Leave it out, or ask an admin of your organisation to give you that role",
            ),
            (
                400,
                "timezone: 'Europe/Berlim' is no time zone of the IANA database",
                "Did you mean Europe/Berlin? Else give a name such as Europe/Berlin, America/New_York or UTC",
            ),
            (400, "digest_hour: got 24; must be <= 23", "The hour of the day that the digest goes out."),
            (
                400,
                "kinds.esim.*: got \"sometimes\"; must be one of 'at_once', 'digest' or 'off'",
                "at_once, digest or off by type or glob. A name decides before a glob, the longer glob before others.",
            ),
        ]
    )


async def test_a_glob_of_many_wildcards_is_refused_since_it_is_compared_with_every_type(mails: MailStage) -> None:
    refused = await mails.ask("ada", "PUT", kinds={"*e*s*i*m*": "digest"})
    assert (refused.status_code, refused.json()["param"]) == (400, "kinds")
    assert [refused.json()["error"], refused.json()["hint"]] == snapshot(
        ["kinds: '*e*s*i*m*' has 5 wildcards; a glob has at most 4", "Name the types, or a family such as order.*"]
    )
    assert (await mails.choose("ada", kinds={"*.*issu*": "digest"}))["told"]["esim.issued"] == "digest"


async def test_the_last_admin_who_is_told_of_money_cannot_switch_it_off(mails: MailStage) -> None:
    await mails.choose("bo", kinds=SILENT)
    refused = await mails.ask("ada", "PUT", kinds={"invoice.overdue": "off"})
    assert (refused.status_code, refused.json()["code"], refused.json()["param"]) == (409, "last_mailed_admin", "kinds")
    assert [refused.json()["error"], refused.json()["hint"]] == snapshot(
        [
            "kinds: no admin would be mailed invoice.overdue; one admin is always told of security and money",
            "Choose digest instead of off, or have another admin choose them first",
        ]
    )
    assert (await mails.ask("ada")).json()["kinds"] == {}, "nothing was changed"
    await mails.choose("ada", kinds={"invoice.overdue": "digest", "organisation.stock_low": "off"})
    await mails.choose("cy", kinds=SILENT)


async def test_where_the_last_admin_who_was_told_leaves_the_others_are_told_again(mails: MailStage) -> None:
    await mails.choose("bo", kinds=SILENT)

    def leave(connection: Connection) -> bool:
        return end_membership(connection, person=mails.people["ada"], organisation=mails.organisation, now=mails.site.clock.now())

    assert await mails.site.service.store.write(leave)
    for type in SECURITY_AND_MONEY_TYPES:
        await mails.happen(type)
    assert [letter.to for letter in await mails.mailed()] == ["bo@fjord.example"] * len(SECURITY_AND_MONEY_TYPES)
    await mails.happen("organisation.stock_low")
    assert await mails.mailed() == []


async def test_who_leaves_gets_no_mail_that_still_waits_for_the_mail_server(mails: MailStage) -> None:
    await mails.choose("cy", kinds={"esim.*": "at_once"})
    await mails.happen("esim.issued")
    assert await EventMails(mails.deps).step() == 1

    def leave(connection: Connection) -> bool:
        return end_membership(connection, person=mails.people["cy"], organisation=mails.organisation, now=mails.site.clock.now())

    assert await mails.site.service.store.write(leave)
    assert await mails.site.letters() == []


async def test_a_choice_ends_with_the_membership_and_is_not_there_when_they_come_back(mails: MailStage) -> None:
    await mails.choose("cy", kinds={"esim.*": "at_once"})
    await mails.happen("esim.issued")

    def leave(connection: Connection) -> bool:
        return end_membership(connection, person=mails.people["cy"], organisation=mails.organisation, now=mails.site.clock.now())

    assert await mails.site.service.store.write(leave)
    assert await mails.mailed() == []
    mails.site.clock.advance(60)
    await mails.site.join(mails.people["cy"], mails.organisation, Role.MEMBER)
    await mails.happen("esim.issued")
    assert await mails.mailed() == []
    assert (await mails.ask("cy")).json()["kinds"] == {}
