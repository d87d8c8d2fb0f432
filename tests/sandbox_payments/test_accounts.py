"""Accounts come, are entered, let the platform in and go."""

from typing import Any
from urllib.parse import urlsplit

import pytest
import stripe
from stripe import oauth_error

from simulators.processor.onboarding import (
    authorize_oauth,
    complete_onboarding,
    follow_account_link,
    open_standard_account,
    restrict_account,
)
from tests.sandbox_payments.processor import PAGES_ADDRESS, ClockedProcessor, processor_with_account

RETURN: Any = {"return_url": "https://us.example/back", "refresh_url": "https://us.example/again"}


def test_an_express_account_takes_payments_once_its_owner_has_told_all() -> None:
    p = ClockedProcessor()
    account = p.v1.accounts.create({"type": "express", "country": "CH", "email": "owner@example.com"})
    assert (account.charges_enabled, account.payouts_enabled, account.details_submitted) == (False, False, False)
    assert account.requirements is not None and account.requirements.currently_due
    assert account.default_currency == "chf"
    link = p.v1.account_links.create({"account": account.id, "type": "account_onboarding", **RETURN})
    token = urlsplit(link.url).path.rsplit("/", 1)[1]
    assert link.url == f"{PAGES_ADDRESS}/onboarding/{token}"
    visit = follow_account_link(p.state, token)
    assert visit is not None and (visit.account, visit.return_url) == (account.id, RETURN["return_url"])
    assert follow_account_link(p.state, token) is None
    complete_onboarding(p.state, visit.account)
    complete_onboarding(p.state, visit.account)
    done = p.v1.accounts.retrieve(account.id)
    assert (done.charges_enabled, done.payouts_enabled, done.details_submitted) == (True, True, True)
    assert done.requirements is not None and done.requirements.currently_due == []
    assert p.types(account.id) == ["account.updated"]


def test_a_link_works_for_five_minutes() -> None:
    p, account, _ = processor_with_account()
    token = p.v1.account_links.create({"account": account, "type": "account_onboarding", **RETURN}).url.rsplit("/", 1)[1]
    p.advance(300)
    assert follow_account_link(p.state, token) is None
    old = p.state.visits.get(token)
    assert old is not None and old.refresh_url == RETURN["refresh_url"]


def test_a_login_link_is_for_express_accounts_that_are_done_only() -> None:
    p = ClockedProcessor()
    fresh = p.v1.accounts.create({"type": "express"})
    with pytest.raises(stripe.InvalidRequestError, match="has not completed onboarding"):
        p.v1.accounts.login_links.create(fresh.id)
    own = open_standard_account(p.state)
    own.attached = True
    with pytest.raises(stripe.InvalidRequestError, match="does not have access to the Express Dashboard"):
        p.v1.accounts.login_links.create(own.id)
    assert p.v1.accounts.login_links.create(p.account()).url.startswith(f"{PAGES_ADDRESS}/dashboard/")


def test_an_owner_lets_the_platform_in_by_a_code_that_works_once() -> None:
    p = ClockedProcessor()
    own = open_standard_account(p.state, name="Own shop").id
    with pytest.raises(stripe.PermissionError):
        p.v1.balance.retrieve(None, {"stripe_account": own})
    code = authorize_oauth(p.state, own)
    token = p.stripe.oauth.token({"grant_type": "authorization_code", "code": code})
    assert (token["stripe_user_id"], token["scope"], token["livemode"], token["token_type"]) == (own, "read_write", False, "bearer")
    assert p.v1.accounts.retrieve(own).type == "standard"
    with pytest.raises(oauth_error.InvalidGrantError, match="already been used"):
        p.stripe.oauth.token({"grant_type": "authorization_code", "code": code})
    with pytest.raises(oauth_error.InvalidGrantError, match="does not exist"):
        p.stripe.oauth.token({"grant_type": "authorization_code", "code": "ac_guess"})
    late = authorize_oauth(p.state, own)
    p.advance(300)
    with pytest.raises(oauth_error.InvalidGrantError, match="expired"):
        p.stripe.oauth.token({"grant_type": "authorization_code", "code": late})
    assert p.types(own) == ["account.application.authorized"]


def test_a_way_in_of_another_kind_is_refused_in_the_words_of_oauth() -> None:
    answer = ClockedProcessor().post("/oauth/token", "grant_type=password&code=1")
    assert (answer.status, answer.body) == (
        400,
        b'{"error":"unsupported_grant_type","error_description":"Unsupported grant type: password"}',
    )


def test_an_account_that_lets_go_is_out_of_reach() -> None:
    p, account, _ = processor_with_account()
    p.stripe.oauth.deauthorize({"client_id": p.state.client_id, "stripe_user_id": account})
    with pytest.raises(stripe.PermissionError):
        p.v1.charges.list(None, {"stripe_account": account})
    with pytest.raises(oauth_error.InvalidClientError):
        p.stripe.oauth.deauthorize({"client_id": p.state.client_id, "stripe_user_id": account})
    assert p.types(account)[-1] == "account.application.deauthorized"
    event = list(p.state.events.values())[-1]
    assert event["data"] == {"object": {"id": p.state.client_id, "object": "application", "name": "Simulated platform"}}


def test_a_restricted_account_says_what_is_asked_for_and_mends_it_by_onboarding_again() -> None:
    p, account, _ = processor_with_account()
    restrict_account(p.state, account)
    found = p.v1.accounts.retrieve(account)
    assert found.charges_enabled is False
    assert found.requirements is not None and found.requirements.currently_due == ["company.verification.document"]
    complete_onboarding(p.state, account)
    assert p.v1.accounts.retrieve(account).charges_enabled is True


def test_a_schedule_set_in_one_place_is_seen_in_the_other() -> None:
    p, account, at = processor_with_account()
    weekly: Any = {"payments": {"payouts": {"schedule": {"interval": "weekly", "weekly_payout_days": ["friday"]}}}}
    p.v1.balance_settings.update(weekly, at)
    settings = p.v1.accounts.retrieve(account).settings
    assert settings is not None and settings.payouts is not None
    assert settings.payouts.schedule.to_dict() == {
        "delay_days": 2,
        "interval": "weekly",
        "weekly_anchor": "friday",
        "weekly_payout_days": ["friday"],
    }
    p.v1.accounts.update(account, {"settings": {"payouts": {"schedule": {"interval": "monthly", "monthly_anchor": 31}}}})
    payouts = p.v1.balance_settings.retrieve(None, at).payments.payouts
    assert payouts is not None and payouts.schedule is not None
    assert payouts.schedule.to_dict() == {"interval": "monthly", "monthly_payout_days": [31]}
    for wrong, param in (
        ({"interval": "weekly"}, "settings[payouts][schedule][weekly_payout_days]"),
        ({"interval": "weekly", "weekly_anchor": "sunday"}, "settings[payouts][schedule][weekly_anchor]"),
        ({"interval": "daily", "monthly_anchor": 3}, "settings[payouts][schedule][monthly_payout_days]"),
        ({"interval": "hourly"}, "settings[payouts][schedule][interval]"),
        ({"interval": "monthly", "monthly_anchor": 32}, "settings[payouts][schedule][monthly_anchor]"),
    ):
        asked: Any = {"settings": {"payouts": {"schedule": wrong}}}
        with pytest.raises(stripe.InvalidRequestError) as refused:
            p.v1.accounts.update(account, asked)
        assert refused.value.param == param
