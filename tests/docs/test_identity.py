"""Every command of the page on people, by somebody who signs up, logs in with a browser and sets an organisation up."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import httpx
import pytest

from operations.people.browser_sessions import SESSION_IDLE_SECONDS, SESSION_LIFETIME_SECONDS
from operations.people.consents import GRANT_SECONDS
from operations.people.session_tokens import ACCESS_TOKEN_SECONDS
from operations.people.signing_keys import SIGNING_KEY_SECONDS
from operations.people.verifications import (
    MAILED_CODE_MINUTES,
    SIGN_INS_OF_STRANGERS,
    SIGN_INS_PER_ADDRESS,
    SIGN_INS_PER_BROWSER,
    SIGN_INS_PER_NETWORK,
)
from operations.setup.api_keys import KeyRestrictions
from operations.setup.members import INVITATION_DAYS, INVITATION_MAILS_PER_ADDRESS, INVITATION_MAILS_PER_DAY
from operations.setup.onboarding_connection import TOKEN_TRIES_PER_HOUR
from operations.setup.sign_up import SIGN_UPS_PER_ADDRESS, SIGN_UPS_PER_NETWORK
from storage.commissions import RATE_BPS
from storage.oauth_tokens import REFRESH_TOKEN_SECONDS, SAME_MOMENT_SECONDS
from storage.verifications import MOST_CODE_TRIES
from tests.docs.blocks import blocks
from tests.docs.reader import done, find, shell
from tests.harness.processes import ROOT, running
from tests.people import Person, code_in, console_of
from transports.oauth.registration import MOST_UNUSED_PROGRAMS
from transports.settings import HistoryDays
from transports.upstream import SPARE_ACCOUNTS
from transports.web.pages.app import PAGE_ROUTES
from transports.web.pages.login_cookies import KNOWN_BROWSER_SECONDS as KNOWN_SECONDS

pytestmark = pytest.mark.long

PAGE = "identity.md"
START, VERIFY, LOGIN, STATE, LOGOUT, KEYS, MEMBERS, STEPS, AFFILIATES, AUDIT = STARTS = (
    "reseller call signup_start",
    "reseller call signup_verify",
    "reseller login",
    "reseller call get_onboarding_state",
    "reseller logout",
    "reseller call create_api_key",
    "reseller members invite",
    "reseller call onboarding_save_org",
    "reseller call affiliates_me_create",
    "reseller audit",
)
DAY = 86_400


class Newcomer(Person):
    """Somebody who follows the page and has no key."""

    place: Path

    def run(self, start: str, **known: str) -> str:
        return done(self.place, find(start, PAGE), **self.settings(), **known)

    def settings(self) -> dict[str, str]:
        return {"RESELLER_URL": self.server.base_url, "XDG_CONFIG_HOME": str(self.place / "config"), "RESELLER_API_KEY": ""}

    def answers(self, start: str) -> list[dict[str, object]]:
        decoder, text, found = json.JSONDecoder(), self.run(start).strip(), []
        while text:
            answer, end = decoder.raw_decode(text)
            found.append(answer)
            text = text[end:].strip()
        return found


@pytest.fixture(scope="module")
def ada(place: Path) -> Iterator[Newcomer]:
    """Ada, of the page's examples, on a server that nobody else has signed up at."""
    with running(place / "people") as server:
        newcomer = Newcomer(server, console_of(place / "people"), "ada@fjord.example")
        newcomer.place = place
        yield newcomer


@pytest.fixture(scope="module")
def logged_in(ada: Newcomer) -> Newcomer:
    before = ada.mailed()
    assert ada.run(START) == ""
    founded = json.loads(ada.run(VERIFY, CODE=asyncio.run(code_in(ada.console, before))))
    assert founded["name"] == "Fjord Mobile"
    with shell(ada.place, find(LOGIN, PAGE), **ada.settings()) as login:
        assert login.stdout is not None and login.stderr is not None
        [address] = [line.strip() for line, _ in zip(login.stderr, range(3), strict=False) if line.startswith("http")]
        httpx.get(ada.allow(address)).raise_for_status()
        assert login.stdout.read() == f"logged in at {ada.server.base_url} (read write admin)\n"
        assert login.wait(60) == 0
    assert json.loads(ada.run(STATE))["current_step"] == "org"
    return ada


def test_a_newcomer_is_set_up_by_the_commands_of_the_page(logged_in: Newcomer) -> None:
    *steps, intent = logged_in.answers(STEPS)
    assert [step["current_step"] for step in steps] == ["ocs", "plan", "plan", "complete", None]
    assert (intent["status"], intent["livemode"]) == ("succeeded", False)


def test_keys_members_affiliates_and_the_log_are_there_for_the_founder(logged_in: Newcomer) -> None:
    made, listed = logged_in.answers(KEYS)
    assert str(made["secret"]).startswith("ak_") and '"calls_per_day": 500' in json.dumps(listed)
    invited, *members = logged_in.run(MEMBERS).splitlines()
    assert invited.startswith("ivt_") and [member.split("\t")[3] for member in members] == ["ada@fjord.example", "bo@fjord.example"]
    joined, commissions = logged_in.answers(AFFILIATES)
    assert joined["object"] and commissions["data"] == []
    [log] = logged_in.answers(AUDIT)
    rows = cast("list[dict[str, str]]", log["data"])
    assert {"affiliates_me_create", "invite_member", "create_api_key"} <= {row["operation"] for row in rows}


def test_after_the_logout_of_the_page_the_next_command_needs_a_credential(logged_in: Newcomer) -> None:
    """The last one that uses the login."""
    assert logged_in.run(LOGOUT) == f"logged out at {logged_in.server.base_url}\n"
    process = shell(logged_in.place, find(STATE, PAGE), **logged_in.settings())
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and "No credential" in err


def test_every_command_of_the_page_is_run() -> None:
    assert [block.text for block in blocks("sh", document=PAGE) if not block.text.startswith(STARTS)] == []


def test_every_page_that_is_named_is_there() -> None:
    text = (ROOT / "docs" / PAGE).read_text()
    named = set(re.findall(r"`/auth(/[a-z-]+)`", text))
    assert named and named <= set(PAGE_ROUTES)


def test_every_restriction_is_in_the_table() -> None:
    keys = (ROOT / "docs" / "keys.md").read_text()
    assert set(re.findall(r"^\| `([a-z_]+)` \|", keys, re.MULTILINE)) == set(KeyRestrictions.model_fields)


def test_the_figures_of_the_page_are_those_of_the_code() -> None:
    text = " ".join((ROOT / "docs" / PAGE).read_text().split())
    minutes, idle, life = ACCESS_TOKEN_SECONDS // 60, SESSION_IDLE_SECONDS // 3600, SESSION_LIFETIME_SECONDS // DAY
    for sentence in (
        f"| after {minutes} minutes; a refresh renews it until the login ends |",
        f"| {idle} hours unused, {life} days at most, or at sign-out |",
        f"ends {GRANT_SECONDS // DAY:g} days later, after {REFRESH_TOKEN_SECONDS // DAY:g} days without use",
        f"Tokens last {minutes} minutes",
        f"more than {SAME_MOMENT_SECONDS:g} seconds later ends the login",
        f"changed every {SIGNING_KEY_SECONDS // DAY:g} days",
        f"within {INVITATION_DAYS} days and accepts",
        f"The commission is {RATE_BPS // 100} % of",
        f"Rows are kept for {HistoryDays().audit} days.",
        f"| Sign-ups | {SIGN_UPS_PER_ADDRESS} an hour per address, {SIGN_UPS_PER_NETWORK} per network",
        f"| Sign-ins, from a browser that is known for the address | {SIGN_INS_PER_BROWSER} an hour for that browser and address,",
        f"| {SIGN_INS_PER_ADDRESS} an hour per address and network, {SIGN_INS_PER_NETWORK} per network, {SIGN_INS_OF_STRANGERS} per",
        f"known for your address for {KNOWN_SECONDS // DAY} days",
        f"| A code | {MAILED_CODE_MINUTES} minutes, {MOST_CODE_TRIES} tries, one use, one browser |",
        f"| Registrations of programs | {MOST_UNUSED_PROGRAMS} of a network",
        f"| Invitations | {INVITATION_MAILS_PER_DAY} a day per organisation, {INVITATION_MAILS_PER_ADDRESS} of them to one address |",
        f"| Own tokens tried | {TOKEN_TRIES_PER_HOUR} an hour per organisation |",
    ):
        assert sentence in text, sentence
    assert len(SPARE_ACCOUNTS) == 3 and "the first three newcomers" in text
