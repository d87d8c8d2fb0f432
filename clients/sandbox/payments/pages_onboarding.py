"""Where an account's owner would tell the processor what it asks for."""

from clients.sandbox.payments.acts import complete_onboarding, follow_visit
from clients.sandbox.payments.entities import Visit as Link
from clients.sandbox.payments.pages_layout import Away, Page, Shown, problem
from clients.sandbox.payments.pages_visit import Visit
from clients.sandbox.payments.visits import find_visit

IN_WORDS = {
    "business_profile.url": "the address of your web site",
    "business_type": "whether you are a company or one person",
    "external_account": "the bank account that payouts go to",
    "tos_acceptance.date": "your consent to the terms of service",
    "company.verification.document": "a document about your company",
}


def show_onboarding(visit: Visit) -> Shown:
    """What is asked for. A link that was used, or is too old, leads to where there are new ones."""
    link = link_of(visit)
    if isinstance(link, Page):
        return link
    if link.used or link.expires_at <= visit.state.now():
        return Away(link.refresh_url)
    account = visit.state.accounts[link.account]
    asked = [IN_WORDS.get(one, one) for one in account.currently_due if one != "tos_acceptance.ip"]
    return Page(
        "onboarding.html",
        {"account": account, "asked": asked, "expires_at": link.expires_at},
        leads_to=(link.return_url, link.refresh_url),
    )


def act_on_onboarding(visit: Visit) -> Shown:
    """All is told, or nothing; the way back is the same, and the platform asks the processor how the account stands."""
    link = link_of(visit)
    if isinstance(link, Page):
        return link
    if visit.do not in ("complete", "later"):
        return show_onboarding(visit)
    if follow_visit(visit.state, visit.name) is None:
        return Away(link.refresh_url)
    if visit.do == "complete":
        complete_onboarding(visit.state, link.account)
    return Away(link.return_url)


def link_of(visit: Visit) -> Link | Page:
    """The link of that name, or the page that says there is none."""
    link = find_visit(visit.state, visit.name)
    if link is None or link.kind == "login":
        return problem("There is no such link", "Go back to where you came from and ask for a new one.", 404)
    return link
