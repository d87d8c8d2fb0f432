"""The state machines that the command plays longer than the tests do."""

import traceback

from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as seeded
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from tests.billing_money.test_machine import MoneyMachine
from tests.fuzz.claims import ClaimCallsMachine, PostgresClaimMachine
from tests.fuzz.orders import OrderMachine, PostgresOrderMachine
from tests.fuzz.quota import PostgresQuotaMachine, QuotaMachine
from tests.fuzz.tokens import PostgresTokenMachine, TokenMachine
from tests.invoices.test_machine import InvoiceMachine
from tests.registry.test_shared_limits import LimitMachine
from tests.simulation.test_claims import ClaimMachine as LedgerClaimMachine
from tests.simulation.test_quota_blocks import QuotaBlockMachine

# The others are played by the tests beside them.
OWN: dict[str, type[RuleBasedStateMachine]] = {
    "claims": ClaimCallsMachine,
    "claims-postgresql": PostgresClaimMachine,
    "tokens": TokenMachine,
    "tokens-postgresql": PostgresTokenMachine,
    "quota": QuotaMachine,
    "quota-postgresql": PostgresQuotaMachine,
    "orders": OrderMachine,
    "orders-postgresql": PostgresOrderMachine,
}
MACHINES: dict[str, type[RuleBasedStateMachine]] = {
    **OWN,
    "invoices": InvoiceMachine,
    "money": MoneyMachine,
    "shared-limits": LimitMachine,
    "ledger-claims": LedgerClaimMachine,
    "quota-blocks": QuotaBlockMachine,
}
STEPS = 50
QUICK = (Phase.explicit, Phase.generate)
"""An example takes a second: looking for the smallest that fails takes minutes, and is asked for by itself."""


def play(name: str, *, examples: int, seed: int, shrink: bool = False, steps: int = STEPS) -> str | None:
    """Play a machine; how it broke, with the steps that break it, or nothing."""
    calm = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        print_blob=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        phases=[*QUICK, Phase.shrink] if shrink else QUICK,
    )
    try:
        run_state_machine_as_test(seeded(seed)(MACHINES[name]), settings=calm)
    except Exception as error:
        return "".join(traceback.format_exception(error))
    return None
