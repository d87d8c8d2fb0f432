"""Which methods of the wire each operation calls, in order: one row per way of calling it. `test_complete.py` holds it to the truth."""

from typing import Any, NamedTuple

from tests.clients.ocs.sources import CLIENT_READS

UNUSED = frozenset({"listResellerTariff", "listTariffRule", "modifyResellerBalance"})
"""What the wire has and no operation calls."""
DEGRADING = (
    *("onboarding_start_managed_account", "onboarding_connect_ocs_token", "onboarding_save_plan", "onboarding_test_esim"),
    *("fleet_health", "marketing_intelligence", "churn_risk", "detect_usage_anomalies", "high_cost_subscribers", "optimize_package"),
    *("audit_network_coverage", "diagnose_subscriber", "detect_country_entry", "ai_insights"),
    *("query_fleet", "fleet_problems", "fleet_sync_status", "list_tags", "tag_lines", "untag_lines"),
    *("list_connectivity_products", "create_connectivity_product", "get_connectivity_product"),
    *("plan_changes", "undo_changes", "apply_changes"),
    *("get_storefront", "upsert_storefront_plan", "update_storefront_plan"),
)
"""What has words for every way the network fails: before it is connected (tests/setup holds them to account), and where an answer goes on
without what could not be read (tests/intelligence_*, tests/fleet, tests/tags, tests/changes, tests/connectivity, tests/storefronts,
tests/assistant)."""
LEDGER = ("issue_esim_from_inventory", "rollback_esim_issuance", "settle_issuance", "settle_order")
"""What keeps its unknown outcomes in the issuance ledger or settles them there, with answers of its own: tests/issuance, tests/evidence and
tests/fulfilment hold them to account."""


class CallRow(NamedTuple):
    """One way of calling an operation. `more` is laid over its example; `uses` are the methods, in order, repetitions left out."""

    operation: str
    uses: tuple[str, ...]
    more: dict[str, Any] = {}  # noqa: RUF012  # never changed

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(method for method in self.uses if method in CLIENT_READS)

    @property
    def write(self) -> str | None:
        return next((method for method in self.uses if method not in CLIENT_READS), None)

    @property
    def name(self) -> str:
        return " ".join([self.operation, *(f"{name}={value}" for name, value in self.more.items())])


ROWS: tuple[CallRow, ...] = (
    CallRow("list_package_templates", ("getResellerInfo", "listPrepaidPackageTemplate")),
    CallRow("create_package_template", ("getResellerInfo", "listDetailedLocationZone", "createPrepaidPackageTemplate")),
    CallRow("modify_template_core", ("listPrepaidPackageTemplate", "getResellerInfo", "modifyPPTCore")),
    CallRow("modify_template_recurring", ("listPrepaidPackageTemplate", "getResellerInfo", "modifyPPTRecurring")),
    CallRow("modify_template_throttling", ("listPrepaidPackageTemplate", "getResellerInfo", "modifyPPTThrottling")),
    CallRow("list_location_zones", ("getResellerInfo", "listDetailedLocationZone")),
    CallRow("list_detailed_location_zones", ("getResellerInfo", "listDetailedLocationZone")),
    CallRow("create_location_zone", ("getResellerInfo", "listNetworkProfile", "createLocationZone")),
    CallRow(
        "change_network_profile_of_location_zone",
        ("getResellerInfo", "listDetailedLocationZone", "listNetworkProfile", "changeNetworkProfileOfLocationZone"),
    ),
    CallRow("list_network_profiles", ("getResellerInfo", "listNetworkProfile")),
    CallRow("set_network_default", ("getResellerInfo", "listSteeringList")),
    CallRow("get_network_default", ("getResellerInfo", "listSteeringList")),
    CallRow("plan_network_default", ("getResellerInfo", "listSteeringList", "getCustomerTariff")),
    CallRow("list_steering_lists", ("getResellerInfo", "listSteeringList")),
    CallRow("list_destination_lists", ("getResellerInfo", "listDetailedDestinationList")),
    CallRow("list_destination_prefixes", ("getResellerInfo", "listDetailedDestinationList", "listDestinationListPrefix")),
    CallRow("get_tariff", ("getResellerInfo", "getCustomerTariff")),
    CallRow("list_subscriber_voip_tariff", ("getResellerInfo", "listSubscriberVoipTariff")),
    CallRow("list_voip_tariff_rule", ("getResellerInfo", "listSubscriberVoipTariff", "listVoipTariffRule")),
    CallRow("list_reseller_accounts", ("listResellerAccount",)),
    CallRow("modify_account_balance", ("modifyAccountBalance",)),
    CallRow("esim_status_per_account", ("esimStatusPerAccount",)),
    CallRow("move_subscriber_range_to_account", ("listResellerAccount", "listSubscriber", "moveSubscriberRangeToAccount")),
    CallRow("get_reseller_info", ("getResellerInfo", "listResellerAccount")),
    CallRow("get_webhook_config", ("getResellerInfo",)),
    CallRow("list_sponsors", ("getResellerInfo", "listSponsor")),
    CallRow("list_subscribers", ("listSubscriber",)),
    CallRow("get_subscriber", ("getSingleSubscriber",)),
    CallRow("modify_subscriber_status", ("getSingleSubscriber", "modifySubscriberStatus")),
    CallRow("list_subscriber_packages", ("getSingleSubscriber", "listSubscriberPrepaidPackages")),
    CallRow("assign_package", ("getSingleSubscriber", "listPrepaidPackageTemplate", "getResellerInfo", "affectPackageToSubscriber")),
    CallRow(
        "assign_recurring_package",
        ("getSingleSubscriber", "listPrepaidPackageTemplate", "getResellerInfo", "affectRecurringPackageToSubscriber"),
    ),
    CallRow("stop_resume_recurring_package", ("getSingleSubscriber", "listSubscriberPrepaidPackages", "stopResumeSubsRecurringPackage")),
    CallRow("modify_package_limits", ("getSingleSubscriber", "listSubscriberPrepaidPackages", "modifySubscriberPrepaidPackageLimits")),
    CallRow("modify_package_status", ("getSingleSubscriber", "listSubscriberPrepaidPackages", "modifySubscriberPrepaidPackageStatus")),
    CallRow(
        "modify_subscriber_package_active_period",
        ("getSingleSubscriber", "listSubscriberPrepaidPackages", "modifySubscriberPrepaidPackageActivePeriod"),
    ),
    CallRow("modify_package_expiry", ("getSingleSubscriber", "listSubscriberPrepaidPackages", "modifySubscriberPrepaidPackageExpDate")),
    CallRow("clean_all_packages", ("getSingleSubscriber", "cleanSubscriberAllPackages")),
    CallRow("delete_subscriber_package", ("getSingleSubscriber", "listSubscriberPrepaidPackages", "deleteSubscriberPackage")),
    CallRow("subscriber_active_period", ("getSingleSubscriber", "getSubscriberActivePeriod")),
    CallRow("subscriber_usage", ("getSingleSubscriber", "subscriberUsageOverPeriod")),
    CallRow("subscriber_network_events", ("getSingleSubscriber", "subscriberNetworkEventsOverPeriod")),
    CallRow("get_subscriber_location", ("getSingleSubscriber", "getSubscriberLocation")),
    CallRow("get_subscriber_location_by_cell_id", ("getSingleSubscriber", "getSubscriberLocationByCellId")),
    CallRow("subscriber_country_history", ("getSingleSubscriber",)),
    CallRow("hlr_get_bitrate", ("getSingleSubscriber", "hlrGetBitrate")),
    CallRow("hlr_set_bitrate", ("getSingleSubscriber", "hlrSetBitrate")),
    CallRow("set_subscriber_traffic_restrictions", ("getSingleSubscriber", "setSubscriberTrafficRestrictions")),
    CallRow(
        "modify_subscriber_steering_list", ("getSingleSubscriber", "getResellerInfo", "listSteeringList", "modifySubscriberSteeringList")
    ),
    CallRow("push_steering_to_subscriber", ("getSingleSubscriber", "getResellerInfo", "listSteeringList", "pushSteeringToSubs")),
    CallRow("get_sim_provider_status", ("getSingleSubscriber", "getSimProviderStatus")),
    CallRow("change_sim_status", ("getSingleSubscriber", "changeSimStatus")),
    CallRow("modify_subscriber_balance", ("getSingleSubscriber", "modifySubscriberBalance")),
    CallRow("modify_subscriber_contact_info", ("getSingleSubscriber", "modifySubscriberContactInfo")),
    CallRow("affect_subscriber_phone_number", ("getSingleSubscriber", "affectSubscriberRealPhoneNumber")),
    CallRow(
        "modify_subscriber_mobile_plan", ("getSingleSubscriber", "getResellerInfo", "listSubscriberTariff", "modifySubscriberMobilePlan")
    ),
    CallRow(
        "modify_subscriber_voip_plan", ("getSingleSubscriber", "getResellerInfo", "listSubscriberVoipTariff", "modifySubscriberVoipPlan")
    ),
    CallRow("send_sms", ("getSingleSubscriber", "sendMtSms")),
    CallRow("reset_subscriber_gz_counter", ("getSingleSubscriber", "resetSubsGzCounter")),
    CallRow("list_connectivity_plans", ("getResellerInfo", "listPrepaidPackageTemplate", "listDetailedLocationZone"), {"limit": 100}),
    CallRow("get_tariff", ("getResellerInfo", "getCustomerTariff"), {"verbose": True}),
    CallRow("list_detailed_location_zones", ("getResellerInfo", "listDetailedLocationZone"), {"verbose": True}),
    CallRow("list_location_zones", ("getResellerInfo", "listDetailedLocationZone", "listLocationZoneElement"), {"zoneId": 2301}),
    CallRow(
        "affect_subscriber_phone_number",
        ("getSingleSubscriber", "affectSubscriberFakePhoneNumber"),
        {"phoneType": "fake", "phoneNumber": None},
    ),
    CallRow("modify_subscriber_balance", ("getSingleSubscriber", "modifySubscriberBalance"), {"mode": "set", "amount": 0}),
    CallRow("modify_account_balance", ("listResellerAccount", "modifyAccountBalance"), {"mode": "set", "amount": 1}),
    CallRow("list_subscribers", ("listSubscriber",), {"q": "898830370000010"}),
    CallRow("list_destination_prefixes", ("getResellerInfo", "listDetailedDestinationList"), {"destinationListId": None}),
    CallRow(
        "move_subscriber_range_to_account",
        ("listResellerAccount", "listNetworkProfile", "listSubscriber", "moveSubscriberRangeToAccount"),
        {"destNetworkProfileId": 412},
    ),
)
