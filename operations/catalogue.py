"""The whole service on one page."""

from operations import health
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
from registry.catalogue import Catalogue, Toolset

CATALOGUE = Catalogue(
    [
        Toolset("system", "Is the service up, and which build is it.", (health,)),
        Toolset(
            "connectivity",
            "Issue eSIMs for plans, report usage, follow events and have them delivered to webhooks.",
            (plans, products, intents, qr, usage_records, usage_ingest, events, observations, webhook_endpoints),
        ),
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
