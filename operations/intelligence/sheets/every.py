"""The sheet of every composite that can be scheduled, by operation id."""

from collections.abc import Callable, Mapping

from operations.intelligence.sheet import Sheet
from operations.intelligence.sheets import (
    audit_network_coverage,
    churn_risk,
    detect_usage_anomalies,
    diagnose_subscriber,
    fleet_health,
    high_cost_subscribers,
    marketing_intelligence,
    optimize_package,
)

SHEETS: Mapping[str, Callable[..., Sheet]] = {
    "audit_network_coverage": audit_network_coverage.sheet,
    "churn_risk": churn_risk.sheet,
    "detect_usage_anomalies": detect_usage_anomalies.sheet,
    "diagnose_subscriber": diagnose_subscriber.sheet,
    "fleet_health": fleet_health.sheet,
    "high_cost_subscribers": high_cost_subscribers.sheet,
    "marketing_intelligence": marketing_intelligence.sheet,
    "optimize_package": optimize_package.sheet,
}
