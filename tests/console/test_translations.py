"""What operations say of themselves in English has a German text: titles, what a person is asked to allow, and what helps."""

from typing import get_args

import pytest

from operations.catalogue import CATALOGUE
from operations.vocabulary import ProblemCause
from registry.challenge import describe_loss, name_losses, what_it_will_do
from tests.approvals.office import ADA_OF_FJORD, ApprovalOffice, open_approval_office
from tests.console.conftest import DemoConsole
from tests.pages.browser import Browser
from tests.stage import opened
from transports.web.console.app import console_texts
from transports.web.console.translations import said_losses, said_promise

office = opened(open_approval_office)
OPERATIONS = CATALOGUE.operations
GERMAN = console_texts("de")
PACKAGE = describe_loss("package", "Nordic 1GB", package="7001", state="running", unused_data="600 MB of 1 GB", ends="2026-12-01T00:00:00Z")
MANY = tuple(describe_loss("package", f"P{number} (x)") for number in range(8))
ICCID = "8988303000000912345"
SENTENCES = (
    (
        "void_invoice",
        f"This will void an invoice: {name_losses((PACKAGE,))}. It cannot be undone.",
        (PACKAGE,),
    ),
    (
        "operator_billing_create_refund",
        "This will refund 5.00 EUR of the charge ch_1a (1,250.00 EUR) to the payer of this charge. It cannot be taken back.",
        (),
    ),
    (
        "operator_billing_create_refund",
        "This will refund 500 JPY in minor units of the charge ch_1a (900 JPY in minor units) to the payer of the order onr_1. "
        "It cannot be taken back.",
        (),
    ),
    (
        "operator_billing_create_manual_payout",
        "This will pay 5.00 EUR out to the bank account of your connected account acct_1A. It cannot be taken back.",
        (),
    ),
    (
        "modify_account_balance",
        f"This will change the balance of an account by -12345.00 EUR: {name_losses((PACKAGE,))}.",
        (PACKAGE,),
    ),
    (
        "modify_account_balance",
        f"This will change the balance of an account to 5.00 EUR: {name_losses((PACKAGE,))}.",
        (PACKAGE,),
    ),
    (
        "erase_buyer",
        f"This will erase a buyer from the storefront sf_1: {name_losses((PACKAGE,))}. It cannot be undone.",
        (PACKAGE,),
    ),
    (
        "rollback_esim_issuance",
        f"This will take back the eSIM that was issued for the order “A: 1. B”: {name_losses(MANY)}. Its package is removed and "
        "what is unused is lost; a profile that was downloaded does not return to stock.",
        MANY,
    ),
    (
        "rollback_esim_issuance",
        "The issuance “A” is rolled_back: nothing is taken back from it any more.",
        (),
    ),
    (
        "settle_issuance",
        "This will settle the issuance “A” as failed, for good: no eSIM was drawn for it. It cannot be undone.",
        (),
    ),
    (
        "settle_issuance",
        f"This will settle the issuance “A” as issued, for good: with the eSIM “{ICCID}”. It cannot be undone.",
        (),
    ),
    (
        "settle_order",
        "This will settle the order “onr_1”, for good: nothing was delivered, and what was paid goes back to its buyer (999 "
        "EUR in minor units).",
        (),
    ),
    (
        "settle_order",
        "This will settle the top-up “onr_1”, for good: its package is there, and its buyer is told.",
        (),
    ),
    (
        "settle_order",
        f"This will settle the order “onr_1”, for good: its buyer gets the eSIM “{ICCID}” by mail.",
        (),
    ),
    (
        "modify_subscriber_status",
        f"This will make the line {ICCID}, which is SUSPENDED now, ACTIVE. modify_subscriber_status can set another status afterwards.",
        (),
    ),
    (
        "modify_subscriber_status",
        f"This will make the line {ICCID}, which is ACTIVE now, END_OF_LIFE: {name_losses((PACKAGE,))}. It cannot be undone: "
        "the line can never be used again, and what is unused is lost.",
        (PACKAGE,),
    ),
    (
        "change_sim_status",
        f"This will mark the SIM of the line {ICCID}, which is Free now, as in use.",
        (),
    ),
    (
        "change_sim_status",
        f"This will return the SIM of the line {ICCID} to stock: {name_losses((PACKAGE,))}. A profile that was downloaded "
        "before cannot be downloaded again after this.",
        (PACKAGE,),
    ),
    (
        "reset_subscriber_gz_counter",
        f"This will set the green-zone counter of a line to zero: {name_losses((PACKAGE,))}. What it has counted is lost for good.",
        (PACKAGE,),
    ),
    (
        "send_sms",
        f"This will send one SMS to the line {ICCID}, shown as from “Fjord”: “Hi. It ends (soon: 5) now.”. It cannot be taken back.",
        (),
    ),
    (
        "clean_all_packages",
        f"This will remove all packages and series of the line {ICCID}. Nothing that is still of use is on it now. It cannot be "
        "undone; what is unused is lost.",
        (),
    ),
    (
        "delete_subscriber_package",
        f"This will delete a package of the line {ICCID}: {name_losses((PACKAGE,))}. It cannot be undone; what is unused is "
        "lost. Its series goes on.",
        (PACKAGE,),
    ),
    (
        "modify_template_core",
        f"This will change the package template 55010: {name_losses((PACKAGE,))}.",
        (PACKAGE,),
    ),
    (
        "modify_template_recurring",
        f"This will change the package template 55010: {name_losses((PACKAGE,))}.",
        (PACKAGE,),
    ),
    (
        "modify_template_throttling",
        f"This will change the package template 55010: {name_losses(MANY[:1])}.",
        MANY[:1],
    ),
    (
        "change_network_profile_of_location_zone",
        f"This will give the location zone 12 another network profile: {name_losses((PACKAGE,))}. The sponsor of the zone's "
        "templates follows.",
        (PACKAGE,),
    ),
    (
        "apply_changes",
        "This will set the status SUSPENDED: 30 rows of the change set chg_1, 2 of which cannot be undone. It makes 3.00 EUR "
        f"due at the network. Lines: {ICCID}, {ICCID}, and more.",
        (),
    ),
    (
        "apply_changes",
        f"This will switch traffic (data off): 1 row of the change set chg_1. Lines: {ICCID}.",
        (),
    ),
    (
        "move_subscriber_range_to_account",
        f"This will move the lines {ICCID} to {ICCID} (iccid) from account 8101 of the reseller 12 to account 8102 of the "
        "reseller 13. They lose all packages at once, and its prices and profiles hold for them. Moving them back does not "
        "bring the packages back.",
        (),
    ),
    (
        "onboarding_connect_ocs_token",
        "This will move your organisation from the managed account 8101 to the reseller 12. What you have at the former one "
        "(lines, packages, templates) is then out of reach here: products, shop plans and schedules that use it fail, and "
        "eSIMs whose outcome is not known yet can no longer be settled. onboarding_start_managed_account leads back while that "
        "account stays assigned to your organisation.",
        (),
    ),
    (
        "operator_billing_connect_oauth_complete",
        "This will attach the account whose owner has consented in place of acct_1, which took payments and which the payment "
        "processor does not let the service into any more. What is paid from then on goes to its owner; invoices and orders "
        "that wait for a payment to the former one are not paid by it. The way back is to disconnect the new account at the "
        "processor, and to connect the former one with operator_billing_connect_oauth_begin.",
        (),
    ),
)
"""What operations say that name what is at hand."""


def test_every_operation_has_a_german_title_and_what_it_will_do() -> None:
    titled = {key.removeprefix("operations.") for key in GERMAN.words if key.startswith("operations.")}
    assert titled == set(OPERATIONS)
    asked = {each.id for each in OPERATIONS.values() if each.approvable or each.confirmable}
    assert asked == {each for each in asked if GERMAN.words.get(f"approvals_words.{each}", "").startswith("Dies ")}
    assert not [each for each in GERMAN.words if each.startswith("operations.") and GERMAN.words[each].endswith(".")]


@pytest.mark.parametrize("language", ["en", "de"])
def test_english_is_what_the_declaration_says(language: str) -> None:
    void = OPERATIONS["void_invoice"]
    begin = what_it_will_do(void.summary)
    said = said_promise(console_texts(language), void, f"{begin} (id inv_1). What exactly would be lost cannot be read now (no_tie).")
    assert (
        said
        == {
            "en": f"{begin} (id inv_1). What exactly would be lost cannot be read now (no_tie).",
            "de": "Dies storniert eine Rechnung, die nicht bezahlt ist; sie bleibt mit ihrer Nummer erhalten (id inv_1). "
            "Was genau verloren ginge, kann jetzt nicht gelesen werden (no_tie).",
        }[language]
    )
    assert ("operations.void_invoice" in console_texts(language).words) == (language == "de")


def test_every_problem_of_a_line_has_german_words_for_what_helps() -> None:
    assert {f"line.advice_{cause}" for cause in get_args(ProblemCause)} <= GERMAN.words.keys()


def test_every_operation_that_names_what_is_at_hand_has_german_sentences() -> None:
    assert {each.id for each in OPERATIONS.values() if each.challenge is not None} <= {operation for operation, _, _ in SENTENCES}
    for operation, sentence, losses in SENTENCES:
        said = said_promise(GERMAN, OPERATIONS[operation], sentence, losses)
        words = set(said.replace("“", " ").split())
        assert not words & {"This", "will", "the", "cannot", "lost", "which", "more", "unused"}, said
        assert all(name in said for name in (ICCID, "Nordic 1GB", "inv_1", "chg_1", "acct_1") if name in sentence), said


def test_names_that_customers_gave_stay_as_they_are_in_german() -> None:
    hostile = describe_loss("package", "x”. It cannot be undone: “{a}", text="y) and 3 more. This will void an invoice: (")
    said = said_promise(GERMAN, OPERATIONS["clean_all_packages"], f"This will remove all packages and series of the line {ICCID}: "
        f"{name_losses((hostile,))}. It cannot be undone; what is unused is lost.", (hostile,))  # fmt: skip
    assert "{a}" in said and "This will void an invoice" in said and said.startswith("Dies entfernt alle Pakete")
    assert said_losses(GERMAN, [PACKAGE])[0] == {
        "kind": "Paket",
        "name": "Nordic 1GB",
        "details": {
            "Paket": "7001",
            "Status": "running",
            "ungenutzte Daten": "600 MB of 1 GB",
            "endet": "2026-12-01T00:00:00Z",
        },
    }


async def test_approvals_and_the_audit_log_speak_german(office: ApprovalOffice) -> None:
    await office.hook(await office.key(), Idempotency_Key="one")
    async with office.browser() as browser:
        browser.http.headers["Accept-Language"] = "de"
        await office.site.sign_in(browser, ADA_OF_FJORD, "/console/approvals")
        seen = await browser.get("/console/approvals")
        assert "Webhook-Endpunkt anlegen" in seen.page.text
        assert "Dies legt einen Webhook-Endpunkt an, an den jedes Ereignis als signierter POST geht (url " in seen.page.text
        log = await browser.get("/console/organisation/audit")
        assert "Webhook-Endpunkt anlegen" in log.page.text and "Create webhook endpoint" not in log.page.text


@pytest.mark.long  # the page waits for a fleet that nobody has read
async def test_today_speaks_german_of_what_waits_for_an_approval(office: ApprovalOffice) -> None:
    await office.hook(await office.key(), Idempotency_Key="one")
    async with office.browser() as browser:
        browser.http.headers["Accept-Language"] = "de"
        await office.site.sign_in(browser, ADA_OF_FJORD, "/console/approvals")
        assert "Dies legt einen Webhook-Endpunkt an" in (await browser.get("/console")).page.text


async def test_what_is_wrong_with_a_field_and_how_it_is_written_speak_german(hers: Browser) -> None:
    hers.http.headers["Accept-Language"] = "de"
    form = (await hers.get("/console/shops")).page.form("/console/shops", "create")
    seen = await hers.send(form, name="Fjord Travel", slug="FJORD")
    assert (seen.status, seen.page.wrong("slug")) == (
        400,
        '"FJORD" hat nicht die Form, die dieses Feld braucht. Schreiben Sie "fjord" in Kleinbuchstaben. Wo der Shop zu finden ist, '
        "/shop/{slug}: 3 bis 40 Zeichen aus a-z, 0-9 und Bindestrichen, die nicht am Anfang oder Ende stehen; kein anderer Shop darf "
        "diese Adresse haben.",
    )


async def test_a_question_and_what_helps_speak_german(demo: Browser, demo_server: DemoConsole) -> None:
    row = demo_server.api.get("/v1/fleet/lines", params={"status": "ACTIVE", "limit": 1}).json()["data"][0]
    page = f"/console/lines/{row['iccid']}"
    demo.http.headers["Accept-Language"] = "de"
    asked = await demo.send((await demo.get(page)).page.form(page, "sms"), message="Ihre Daten sind aufgebraucht.")
    said = f"Dies sendet eine SMS an die Leitung {row['iccid']}, gezeigt mit dem Absender „"
    assert said in asked.page.text and "Ihre Daten sind aufgebraucht.“. Es kann nicht zurückgenommen werden." in asked.page.text
    assert "SMS an “" in asked.page.text and "Absender " in asked.page.text
    today = (await demo.get("/console")).page.text
    assert any(GERMAN.words[f"line.advice_{cause}"] in today for cause in get_args(ProblemCause))
