"""Every method of the wire: 58 documented ones and one that is not."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from clients.sandbox.ocs.entities import Token
from clients.sandbox.ocs.methods import (
    balances,
    line_settings,
    numbers,
    package_changes,
    packages,
    places,
    radio,
    ranges,
    reseller,
    statistics,
    subscribers,
    tariffs,
    templates,
    zones,
)
from clients.sandbox.ocs.state import World

Method: TypeAlias = Callable[[World, Token, object], object]

STATISTICS: Mapping[str, Method] = {
    "subscriberUsageOverPeriod": statistics.subscriber_usage_over_period,
    "subscriberNetworkEventsOverPeriod": statistics.subscriber_network_events_over_period,
}
VERSION_2: Mapping[str, Method] = {
    "listSubscriberPrepaidPackages": packages.list_subscriber_prepaid_packages_v2,
    "moveSubscriberRangeToAccount": ranges.move_subscriber_range_to_account_v2,
}
VERSION_1: Mapping[str, Method] = {
    "listResellerAccount": reseller.list_reseller_account,
    "modifyAccountBalance": balances.modify_account_balance,
    "modifyResellerBalance": balances.modify_reseller_balance,
    "getResellerInfo": reseller.get_reseller_info,
    "esimStatusPerAccount": reseller.esim_status_per_account,
    "listSponsor": reseller.list_sponsor,
    "listSteeringList": reseller.list_steering_list,
    "getSingleSubscriber": subscribers.get_single_subscriber,
    "listSubscriber": subscribers.list_subscriber,
    "affectSubscriberRealPhoneNumber": numbers.affect_subscriber_real_phone_number,
    "affectSubscriberFakePhoneNumber": numbers.affect_subscriber_fake_phone_number,
    "getSimProviderStatus": subscribers.get_sim_provider_status,
    "modifySubscriberBalance": balances.modify_subscriber_balance,
    "hlrSetBitrate": radio.hlr_set_bitrate,
    "hlrGetBitrate": radio.hlr_get_bitrate,
    "moveSubscriberRangeToAccount": ranges.move_subscriber_range_to_account,
    "modifySubscriberContactInfo": line_settings.modify_subscriber_contact_info,
    "modifySubscriberStatus": line_settings.modify_subscriber_status,
    "setSubscriberTrafficRestrictions": line_settings.set_subscriber_traffic_restrictions,
    "modifySubscriberSteeringList": line_settings.modify_subscriber_steering_list,
    "pushSteeringToSubs": radio.push_steering_to_subs,
    "cleanSubscriberAllPackages": packages.clean_subscriber_all_packages,
    "resetSubsGzCounter": radio.reset_subs_gz_counter,
    "getSubscriberLocation": places.get_subscriber_location,
    "getSubscriberLocationByCellId": places.get_subscriber_location_by_cell_id,
    "changeSimStatus": line_settings.change_sim_status,
    "affectPackageToSubscriber": packages.affect_package_to_subscriber,
    "affectRecurringPackageToSubscriber": packages.affect_recurring_package_to_subscriber,
    "listSubscriberPrepaidPackages": packages.list_subscriber_prepaid_packages,
    "modifySubscriberPrepaidPackageLimits": package_changes.modify_subscriber_prepaid_package_limits,
    "modifySubscriberPrepaidPackageExpDate": package_changes.modify_subscriber_prepaid_package_exp_date,
    "modifySubscriberPrepaidPackageStatus": package_changes.modify_subscriber_prepaid_package_status,
    "stopResumeSubsRecurringPackage": package_changes.stop_resume_subs_recurring_package,
    "deleteSubscriberPackage": packages.delete_subscriber_package,
    "modifySubscriberPrepaidPackageActivePeriod": package_changes.modify_subscriber_prepaid_package_active_period,
    "modifySubscriberMobilePlan": line_settings.modify_subscriber_mobile_plan,
    "modifySubscriberVoipPlan": line_settings.modify_subscriber_voip_plan,
    "listPrepaidPackageTemplate": templates.list_prepaid_package_template,
    "listLocationZoneElement": zones.list_location_zone_element,
    "listDestinationListPrefix": zones.list_destination_list_prefix,
    "listDetailedLocationZone": zones.list_detailed_location_zone,
    "listDetailedDestinationList": zones.list_detailed_destination_list,
    "createPrepaidPackageTemplate": templates.create_prepaid_package_template,
    "modifyPPTCore": templates.modify_ppt_core,
    "modifyPPTRecurring": templates.modify_ppt_recurring,
    "modifyPPTThrottling": templates.modify_ppt_throttling,
    "listResellerTariff": tariffs.list_reseller_tariff,
    "listSubscriberTariff": tariffs.list_subscriber_tariff,
    "listTariffRule": tariffs.list_tariff_rule,
    "getCustomerTariff": tariffs.get_customer_tariff,
    "listSubscriberVoipTariff": tariffs.list_subscriber_voip_tariff,
    "listVoipTariffRule": tariffs.list_voip_tariff_rule,
    "getSubscriberActivePeriod": statistics.get_subscriber_active_period,
    **STATISTICS,
    "sendMtSms": radio.send_mt_sms,
    "listNetworkProfile": zones.list_network_profile,
    "createLocationZone": zones.create_location_zone,
    "changeNetworkProfileOfLocationZone": zones.change_network_profile_of_location_zone,
}
ANSWER_KEYS: Mapping[str, str] = {
    "getCustomerTariff": "listTariffRule",
    "modifyPPTCore": "modifyPrepaidPackageTemplate",
    "modifyPPTRecurring": "modifyPrepaidPackageTemplate",
    "modifyPPTThrottling": "modifyPrepaidPackageTemplate",
    "getSubscriberLocation": "subscriberLocation",
    "getSubscriberLocationByCellId": "subscriberLocation",
}
"""Where the answer's key is not the method's name (quirk 1)."""
