"""The whole service on one page."""

from operations import health
from operations.connectivity import events, intents, plans, products, webhook_endpoints
from registry.catalogue import Catalogue, Toolset

CATALOGUE = Catalogue(
    [
        Toolset("system", "Is the service up, and which build is it.", (health,)),
        Toolset(
            "connectivity",
            "Issue eSIMs for plans, report usage, follow events and have them delivered to webhooks.",
            (plans, products, intents, events, webhook_endpoints),
        ),
    ],
    core=(
        "list_connectivity_plans",
        "create_connectivity_intent",
        "list_connectivity_intents",
        "get_connectivity_intent",
        "confirm_connectivity_intent",
    ),
)
