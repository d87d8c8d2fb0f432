"""The whole service on one page."""

from operations import health
from operations.accounts import accounts, balance, esim_stock, moves, reseller, sponsors, webhook_config
from operations.bridge import webhook
from operations.connectivity import (
    events,
    intents,
    observations,
    plans,
    products,
    qr,
    usage_ingest,
    usage_records,
    webhook_endpoints,
)
from operations.setup import api_keys
from operations.subscribers import (
    balance as line_balance,
)
from operations.subscribers import (
    bitrate,
    cell_location,
    contact,
    country_history,
    green_zone,
    location,
    notes,
    package_changes,
    package_dates,
    package_removal,
    packages,
    periods,
    phone_number,
    price_plans,
    recurring_packages,
    search,
    sim_status,
    sim_status_change,
    sms,
    statistics,
    status,
    steering,
    subscribers,
    traffic_restrictions,
)
from registry.catalogue import Catalogue, Toolset

CATALOGUE = Catalogue(
    [
        Toolset("system", "Is the service up, and which build is it.", (health,)),
        Toolset(
            "connectivity",
            "Issue eSIMs for plans, report usage, follow events and have them delivered to webhooks.",
            (plans, products, intents, qr, usage_records, usage_ingest, events, observations, webhook_endpoints),
        ),
        Toolset(
            "accounts",
            "Your accounts at the charging system: balances, stock of eSIMs, the reseller behind them.",
            (accounts, balance, esim_stock, moves, reseller, webhook_config, sponsors),
        ),
        Toolset(
            "subscribers",
            "Find lines, see what they use and where they are, change their packages, status, networks and limits.",
            (
                search,
                subscribers,
                status,
                packages,
                recurring_packages,
                package_changes,
                package_dates,
                package_removal,
                periods,
                statistics,
                location,
                cell_location,
                country_history,
                bitrate,
                traffic_restrictions,
                steering,
                sim_status,
                sim_status_change,
                line_balance,
                contact,
                phone_number,
                price_plans,
                sms,
                green_zone,
                notes,
            ),
        ),
        Toolset("bridge", "What the network bridge and the charging system push to us.", (webhook,)),
        Toolset("setup", "API keys, onboarding and affiliates of your organisation.", (api_keys,)),
    ],
    core=(
        "list_connectivity_plans",
        "create_connectivity_intent",
        "list_connectivity_intents",
        "get_connectivity_intent",
        "confirm_connectivity_intent",
    ),
)
