"""Which methods of the wire each operation calls, in order: one row per way of calling it. `test_complete.py` holds it to the truth."""

from typing import Any, NamedTuple

READS = frozenset(
    {
        "esimStatusPerAccount",
        "getCustomerTariff",
        "getResellerInfo",
        "getSimProviderStatus",
        "getSingleSubscriber",
        "getSubscriberActivePeriod",
        "getSubscriberLocation",
        "getSubscriberLocationByCellId",
        "hlrGetBitrate",
        "listDestinationListPrefix",
        "listDetailedDestinationList",
        "listDetailedLocationZone",
        "listLocationZoneElement",
        "listNetworkProfile",
        "listPrepaidPackageTemplate",
        "listResellerAccount",
        "listSponsor",
        "listSteeringList",
        "listSubscriber",
        "listSubscriberPrepaidPackages",
        "listSubscriberTariff",
        "listSubscriberVoipTariff",
        "listVoipTariffRule",
        "subscriberNetworkEventsOverPeriod",
        "subscriberUsageOverPeriod",
    }
)
"""What changes nothing. Every other method is a write, which is never sent twice."""
UNUSED = frozenset({"listResellerTariff", "listTariffRule", "modifyResellerBalance"})
"""What the wire has and no operation calls."""
DEGRADING = (
    *("onboarding_start_managed_account", "onboarding_connect_ocs_token", "onboarding_save_plan", "onboarding_test_esim"),
    *("fleet_health", "marketing_intelligence", "churn_risk", "detect_usage_anomalies", "high_cost_subscribers", "optimize_package"),
    *("audit_network_coverage", "diagnose_subscriber", "detect_country_entry", "ai_insights"),
)
"""What has words for every way the network fails: before it is connected (tests/setup holds them to account), and where an answer goes on
without what could not be read (tests/intelligence_*, tests/assistant)."""
LEDGER = ("issue_esim_from_inventory", "rollback_esim_issuance")
"""What keeps its unknown outcomes in the issuance ledger, with answers of its own: tests/issuance holds them to account."""


class Row(NamedTuple):
    """One way of calling an operation. `more` is laid over its example; `uses` are the methods, in order, repetitions left out."""

    operation: str
    uses: tuple[str, ...]
    more: dict[str, Any] = {}  # noqa: RUF012  # never changed

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(method for method in self.uses if method in READS)

    @property
    def write(self) -> str | None:
        return next((method for method in self.uses if method not in READS), None)

    @property
    def name(self) -> str:
        return " ".join([self.operation, *(f"{name}={value}" for name, value in self.more.items())])


ROWS: tuple[Row, ...] = (
    Row("list_package_templates", ("getResellerInfo", "listPrepaidPackageTemplate")),
    Row("create_package_template", ("getResellerInfo", "listDetailedLocationZone", "createPrepaidPackageTemplate")),
    Row("modify_template_core", ("listPrepaidPackageTemplate", "getResellerInfo", "modifyPPTCore")),
    Row("modify_template_recurring", ("listPrepaidPackageTemplate", "getResellerInfo", "modifyPPTRecurring")),
    Row("modify_template_throttling", ("listPrepaidPackageTemplate", "getResellerInfo", "modifyPPTThrottling")),
    Row("list_location_zones", ("getResellerInfo", "listDetailedLocationZone")),
    Row("list_detailed_location_zones", ("getResellerInfo", "listDetailedLocationZone")),
    Row("create_location_zone", ("getResellerInfo", "listNetworkProfile", "createLocationZone")),
    Row(
        "change_network_profile_of_location_zone",
        ("getResellerInfo", "listDetailedLocationZone", "listNetworkProfile", "changeNetworkProfileOfLocationZone"),
    ),
    Row("list_network_profiles", ("getResellerInfo", "listNetworkProfile")),
    Row("set_network_default", ("getResellerInfo", "listSteeringList")),
    Row("get_network_default", ("getResellerInfo", "listSteeringList")),
    Row("plan_network_default", ("getResellerInfo", "listSteeringList", "getCustomerTariff")),
    Row("list_steering_lists", ("getResellerInfo", "listSteeringList")),
    Row("list_destination_lists", ("getResellerInfo", "listDetailedDestinationList")),
    Row("list_destination_prefixes", ("getResellerInfo", "listDetailedDestinationList", "listDestinationListPrefix")),
    Row("get_tariff", ("getResellerInfo", "getCustomerTariff")),
    Row("list_subscriber_voip_tariff", ("getResellerInfo", "listSubscriberVoipTariff")),
    Row("list_voip_tariff_rule", ("getResellerInfo", "listSubscriberVoipTariff", "listVoipTariffRule")),
    Row("list_reseller_accounts", ("listResellerAccount",)),
    Row("modify_account_balance", ("modifyAccountBalance",)),
    Row("esim_status_per_account", ("esimStatusPerAccount",)),
    Row("move_subscriber_range_to_account", ("listResellerAccount", "listSubscriber", "moveSubscriberRangeToAccount")),
    Row("get_reseller_info", ("getResellerInfo", "listResellerAccount")),
    Row("get_webhook_config", ("getResellerInfo",)),
    Row("list_sponsors", ("getResellerInfo", "listSponsor")),
    Row("list_subscribers", ("listSubscriber",)),
    Row("get_subscriber", ("getSingleSubscriber",)),
    Row("modify_subscriber_status", ("getSingleSubscriber", "modifySubscriberStatus")),
    Row("list_subscriber_packages", ("getSingleSubscriber", "listSubscriberPrepaidPackages")),
    Row("assign_package", ("getSingleSubscriber", "listPrepaidPackageTemplate", "getResellerInfo", "affectPackageToSubscriber")),
    Row(
        "assign_recurring_package",
        ("getSingleSubscriber", "listPrepaidPackageTemplate", "getResellerInfo", "affectRecurringPackageToSubscriber"),
    ),
    Row("stop_resume_recurring_package", ("getSingleSubscriber", "listSubscriberPrepaidPackages", "stopResumeSubsRecurringPackage")),
    Row("modify_package_limits", ("getSingleSubscriber", "listSubscriberPrepaidPackages", "modifySubscriberPrepaidPackageLimits")),
    Row("modify_package_status", ("getSingleSubscriber", "listSubscriberPrepaidPackages", "modifySubscriberPrepaidPackageStatus")),
    Row(
        "modify_subscriber_package_active_period",
        ("getSingleSubscriber", "listSubscriberPrepaidPackages", "modifySubscriberPrepaidPackageActivePeriod"),
    ),
    Row("modify_package_expiry", ("getSingleSubscriber", "listSubscriberPrepaidPackages", "modifySubscriberPrepaidPackageExpDate")),
    Row("clean_all_packages", ("getSingleSubscriber", "cleanSubscriberAllPackages")),
    Row("delete_subscriber_package", ("getSingleSubscriber", "listSubscriberPrepaidPackages", "deleteSubscriberPackage")),
    Row("subscriber_active_period", ("getSingleSubscriber", "getSubscriberActivePeriod")),
    Row("subscriber_usage", ("getSingleSubscriber", "subscriberUsageOverPeriod")),
    Row("subscriber_network_events", ("getSingleSubscriber", "subscriberNetworkEventsOverPeriod")),
    Row("get_subscriber_location", ("getSingleSubscriber", "getSubscriberLocation")),
    Row("get_subscriber_location_by_cell_id", ("getSingleSubscriber", "getSubscriberLocationByCellId")),
    Row("subscriber_country_history", ("getSingleSubscriber",)),
    Row("hlr_get_bitrate", ("getSingleSubscriber", "hlrGetBitrate")),
    Row("hlr_set_bitrate", ("getSingleSubscriber", "hlrSetBitrate")),
    Row("set_subscriber_traffic_restrictions", ("getSingleSubscriber", "setSubscriberTrafficRestrictions")),
    Row("modify_subscriber_steering_list", ("getSingleSubscriber", "getResellerInfo", "listSteeringList", "modifySubscriberSteeringList")),
    Row("push_steering_to_subscriber", ("getSingleSubscriber", "pushSteeringToSubs")),
    Row("get_sim_provider_status", ("getSingleSubscriber", "getSimProviderStatus")),
    Row("change_sim_status", ("getSingleSubscriber", "changeSimStatus")),
    Row("modify_subscriber_balance", ("getSingleSubscriber", "modifySubscriberBalance")),
    Row("modify_subscriber_contact_info", ("getSingleSubscriber", "modifySubscriberContactInfo")),
    Row("affect_subscriber_phone_number", ("getSingleSubscriber", "affectSubscriberRealPhoneNumber")),
    Row("modify_subscriber_mobile_plan", ("getSingleSubscriber", "getResellerInfo", "listSubscriberTariff", "modifySubscriberMobilePlan")),
    Row("modify_subscriber_voip_plan", ("getSingleSubscriber", "getResellerInfo", "listSubscriberVoipTariff", "modifySubscriberVoipPlan")),
    Row("send_sms", ("getSingleSubscriber", "sendMtSms")),
    Row("reset_subscriber_gz_counter", ("getSingleSubscriber", "resetSubsGzCounter")),
    Row("list_connectivity_plans", ("getResellerInfo", "listPrepaidPackageTemplate", "listDetailedLocationZone"), {"limit": 100}),
    Row("get_tariff", ("getResellerInfo", "getCustomerTariff"), {"verbose": True}),
    Row("list_detailed_location_zones", ("getResellerInfo", "listDetailedLocationZone"), {"verbose": True}),
    Row("list_location_zones", ("getResellerInfo", "listDetailedLocationZone", "listLocationZoneElement"), {"zoneId": 2301}),
    Row(
        "affect_subscriber_phone_number",
        ("getSingleSubscriber", "affectSubscriberFakePhoneNumber"),
        {"phoneType": "fake", "phoneNumber": None},
    ),
    Row("modify_subscriber_balance", ("getSingleSubscriber", "modifySubscriberBalance"), {"mode": "set", "amount": 0}),
    Row("modify_account_balance", ("listResellerAccount", "modifyAccountBalance"), {"mode": "set", "amount": 1}),
    Row("list_subscribers", ("listSubscriber",), {"q": "898830370000010"}),
    Row("list_destination_prefixes", ("getResellerInfo", "listDetailedDestinationList"), {"destinationListId": None}),
    Row(
        "move_subscriber_range_to_account",
        ("listResellerAccount", "listNetworkProfile", "listSubscriber", "moveSubscriberRangeToAccount"),
        {"destNetworkProfileId": 412},
    ),
)
