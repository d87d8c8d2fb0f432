"""What a cause means for whoever uses the line, and which operations help, the likeliest first."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from operations.intelligence.diagnosis.facts import Facts
from operations.intelligence.diagnosis.rules import Cause, Found

Effect = Literal["no_data", "slow", "charged", "none", "unknown"]
CHARGED: frozenset[Cause] = frozenset(
    {"no_package", "package_not_started", "package_expired", "package_exhausted", "package_blocked", "zone_not_covering"}
)
"""What leaves use without a package: a balance pays for it, where there is one."""


class Step(NamedTuple):
    """An operation, and what to do with it."""

    operation: str
    why: str


NEW_PACKAGE = Step("assign_package", "Put a package with data on the line; list_package_templates names them.")
STEPS: Mapping[Cause, tuple[Step, ...]] = {
    "status_not_active": (Step("modify_subscriber_status", "Set ACTIVE; a line that has ended stays ended, use another."),),
    "data_not_allowed": (Step("set_subscriber_traffic_restrictions", "Send data: true."),),
    "sim_in_stock": (Step("change_sim_status", "Send ENABLED: the SIM is in stock, not in use."),),
    "profile_not_installed": (
        Step("get_subscriber", "Ask for the field activationCode and give it to the user once more, to install the eSIM with."),
        Step("get_sim_provider_status", "Look again when the user has installed it."),
    ),
    "profile_disabled": (Step("get_sim_provider_status", "Have the user switch the eSIM on in the device, then look again."),),
    "profile_deleted": (
        Step("get_subscriber", "A deleted profile mostly cannot be installed again: see which line the user had."),
        Step("list_subscribers", "Choose a line from stock (status INACTIVE) for the user."),
    ),
    "no_package": (NEW_PACKAGE,),
    "package_not_started": (Step("modify_subscriber_package_active_period", "Begin earlier, where it has no date yet."), NEW_PACKAGE),
    "package_expired": (NEW_PACKAGE, Step("modify_package_expiry", "Or lengthen the package that has data left.")),
    "package_exhausted": (NEW_PACKAGE, Step("modify_package_limits", "Or raise the package's data limit.")),
    "package_blocked": (Step("modify_package_status", "Send ACTIVE to release the package."),),
    "zone_not_covering": (
        Step("push_steering_to_subscriber", "Its zone has other networks of the country: have the SIM look for one."),
        Step("modify_subscriber_steering_list", "Or give it a list that prefers covered networks, then push."),
        Step("assign_package", "Put a package on it whose zone has this network; list_location_zones shows zones."),
    ),
    "throttled": (
        Step("hlr_set_bitrate", "Send UNLIMITED, where the limit was set by hand."),
        Step("assign_package", "Where a package's threshold or fair use set it: a new package lifts it."),
    ),
    "balance_empty": (
        Step("modify_subscriber_balance", "Add to the line's balance, where that pays."),
        Step("modify_account_balance", "Else to the account's."),
    ),
    "registrations_rejected": (
        Step("subscriber_network_events", "See which networks refused it, and with what result."),
        Step("push_steering_to_subscriber", "Have the SIM try the networks of its steering list."),
    ),
    "never_attached": (
        Step("get_sim_provider_status", "See whether the profile is installed and enabled."),
        Step("subscriber_network_events", "Have the user switch data roaming on and the device off and on, then look."),
    ),
    "healthy": (),
    "undetermined": (Step("diagnose_subscriber", "Ask again: not everything could be read."),),
}


def steps_of(found: Found) -> tuple[Step, ...]:
    """What to do; outside a zone, steering helps only where the zone has another network of the country."""
    steps = STEPS[found.cause]
    if found.cause != "zone_not_covering":
        return steps
    return steps if any(rule.what == "country_covered" for rule in found.fired) else steps[2:]


def effect_of(cause: Cause, facts: Facts) -> Effect:
    """What the user of the line notices."""
    if cause in ("healthy", "undetermined"):
        return "none" if cause == "healthy" else "unknown"
    if cause == "throttled":
        return "slow"
    return "charged" if cause in CHARGED and (facts.balance or 0) > 0 else "no_data"
