"""The whole service on one page."""

from operations import (
    accounts,
    assistant,
    billing,
    bridge,
    changes,
    connectivity,
    intelligence,
    invoicing,
    network,
    setup,
    storefronts,
    subscribers,
    system,
)
from operations.connectivity import destinations, mcp_events
from operations.intelligence import fleet as intelligence_fleet
from operations.setup.credentials import explained_keys
from registry.catalogue import Catalogue, Toolset

CATALOGUE = Catalogue(
    [
        Toolset("system", "Is the service up, and which build is it.", (system,)),
        Toolset(
            "connectivity",
            "Issue eSIMs for plans, report usage, follow events and have them delivered to webhooks.",
            (connectivity,),
        ),
        Toolset(
            "events", "Which events there are, and who is told of them: endpoints, test sends, deliveries, mail, alerts.", (destinations,)
        ),
        Toolset(
            "accounts",
            "Your accounts at the charging system: balances, stock of eSIMs, the reseller behind them.",
            (accounts,),
        ),
        Toolset(
            "subscribers",
            "Find lines, see what they use and where they are, change their packages, status, networks and limits.",
            (subscribers,),
        ),
        Toolset(
            "network",
            "Package templates, zones, networks and what they cost, steering lists, destinations, tariffs.",
            (network,),
        ),
        Toolset(
            "invoicing",
            "Call records, what they add up to, and the invoices made of them: months, prices, drafts, payment.",
            (invoicing,),
        ),
        Toolset(
            "billing",
            "Your payment account at the processor: onboarding, balance, charges, refunds, disputes, payouts, fraud, promotions, identity.",
            (billing,),
        ),
        Toolset(
            "storefronts",
            "Shops where buyers pay your plans: what they sell, what everybody sees of them, and what was ordered.",
            (storefronts,),
        ),
        Toolset(
            "assistant",
            "A language model that looks things up for you, cards about the fleet, and how often it may be asked.",
            (assistant,),
        ),
        Toolset("bridge", "What the network bridge and the charging system push to us.", (bridge,)),
        Toolset(
            "setup",
            "API keys, members, audit log, onboarding and affiliates of your organisation.",
            (setup,),
        ),
        Toolset(
            "fleet",
            "The whole fleet at once, from what was read in the background: find and count lines, see every problem and what mends it.",
            (intelligence_fleet,),
        ),
        Toolset("changes", "Tag lines, and change many of them at once: plan, approve, apply, undo.", (changes, explained_keys)),
        Toolset(
            "intelligence",
            "Questions about a whole fleet: its health and cost, which lines leave, spike, roam wrongly or have the wrong package.",
            (intelligence,),
        ),
    ],
    core=(
        "list_connectivity_plans",
        "create_connectivity_intent",
        "list_connectivity_intents",
        "get_connectivity_intent",
        "confirm_connectivity_intent",
    ),
    usual=("whoami",),
    about_oneself=("explain_key",),
    beside=[Toolset("events", "What MCP clients poll and subscribe to.", (mcp_events,))],
)
