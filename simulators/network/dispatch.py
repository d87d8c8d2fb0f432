"""Dispatch: every method of the wire, who calls it, and how a request's body becomes an answer's status and payload."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias, cast
from urllib.parse import parse_qs

import orjson

from simulators.network.entities import ADDRESS_NOT_ALLOWED, INVALID_REQUEST, NO_API_ACCOUNT, UNKNOWN_REQUEST, NetworkRefusal, NetworkToken
from simulators.network.methods import packages, radio, resellers, statistics, subscribers, tariffs, templates, zones
from simulators.network.wire import NO_PAYLOAD, TruncatedPayload, WireMembers
from simulators.network.world import World

NetworkMethod: TypeAlias = Callable[[World, NetworkToken, object], object]
STATISTICS_METHODS: Mapping[str, NetworkMethod] = {
    "subscriberUsageOverPeriod": statistics.subscriber_usage_over_period,
    "subscriberNetworkEventsOverPeriod": statistics.subscriber_network_events_over_period,
}
VERSION_2_METHODS: Mapping[str, NetworkMethod] = {
    "listSubscriberPrepaidPackages": packages.list_subscriber_prepaid_packages_v2,
    "moveSubscriberRangeToAccount": resellers.move_subscriber_range_to_account_v2,
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
TOKEN_SCHEMES = ("bearer", "token")


class MethodCall(NamedTuple):
    """One method call."""

    method: str
    params: object


class CallOutcome(NamedTuple):
    """How a call ended; `payload` NOTHING leaves the answer key out, None writes null."""

    code: int
    message: str
    payload: object = NO_PAYLOAD


def methods_at_path(path: str) -> Mapping[str, NetworkMethod] | None:
    """What a base address serves. Any path that ends in a version does; `/as/v1` is the statistics server."""
    tail = path.rstrip("/")
    if tail.endswith("/as/v1"):
        return STATISTICS_METHODS
    if tail.endswith("/v1"):
        return VERSION_1_METHODS
    return VERSION_2_METHODS if tail.endswith("/v2") else None


def read_method_call(body: bytes) -> MethodCall:
    """Exactly one top-level key, which is the method."""
    try:
        found: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise NetworkRefusal(INVALID_REQUEST, "the body is not JSON") from None
    if not isinstance(found, dict) or len(cast(WireMembers, found)) != 1:
        raise NetworkRefusal(INVALID_REQUEST, "the body must be an object with exactly one key, the method")
    ((method, params),) = cast(WireMembers, found).items()
    return MethodCall(method, params)


def perform_method(world: World, caller: NetworkToken, methods: Mapping[str, NetworkMethod], request: MethodCall) -> CallOutcome:
    """Call the method; a refusal has changed nothing."""
    method = methods.get(request.method)
    if method is None:
        return CallOutcome(UNKNOWN_REQUEST, "unknown request")
    try:
        return CallOutcome(0, "OK", method(world, caller, request.params))
    except NetworkRefusal as refused:
        return refused_outcome(refused)


def refused_outcome(refused: NetworkRefusal) -> CallOutcome:
    """A refusal as an outcome."""
    return CallOutcome(refused.code, refused.message, NO_PAYLOAD if refused.payload is None else refused.payload)


def encode_answer(method: str, outcome: CallOutcome) -> bytes:
    """The answer's bytes; those of a broken payload end in its middle."""
    broken = isinstance(outcome.payload, TruncatedPayload)
    payload = outcome.payload.payload if isinstance(outcome.payload, TruncatedPayload) else outcome.payload
    answer: WireMembers = {"status": {"code": outcome.code, "msg": outcome.message}}
    if payload is not NO_PAYLOAD:
        answer[ANSWER_KEYS.get(method, method)] = payload
    text = orjson.dumps(answer)
    return truncate_json(text) if broken else text


def truncate_json(text: bytes) -> bytes:
    """What arrives of JSON that was cut off."""
    return text[: len(text) * 2 // 3]


VERSION_1_METHODS: Mapping[str, NetworkMethod] = {
    "listResellerAccount": resellers.list_reseller_account,
    "modifyAccountBalance": resellers.modify_account_balance,
    "modifyResellerBalance": resellers.modify_reseller_balance,
    "getResellerInfo": resellers.get_reseller_info,
    "esimStatusPerAccount": resellers.esim_status_per_account,
    "listSponsor": resellers.list_sponsor,
    "listSteeringList": resellers.list_steering_list,
    "getSingleSubscriber": subscribers.get_single_subscriber,
    "listSubscriber": subscribers.list_subscriber,
    "affectSubscriberRealPhoneNumber": subscribers.affect_subscriber_real_phone_number,
    "affectSubscriberFakePhoneNumber": subscribers.affect_subscriber_fake_phone_number,
    "getSimProviderStatus": subscribers.get_sim_provider_status,
    "modifySubscriberBalance": resellers.modify_subscriber_balance,
    "hlrSetBitrate": radio.hlr_set_bitrate,
    "hlrGetBitrate": radio.hlr_get_bitrate,
    "moveSubscriberRangeToAccount": resellers.move_subscriber_range_to_account,
    "modifySubscriberContactInfo": subscribers.modify_subscriber_contact_info,
    "modifySubscriberStatus": subscribers.modify_subscriber_status,
    "setSubscriberTrafficRestrictions": subscribers.set_subscriber_traffic_restrictions,
    "modifySubscriberSteeringList": subscribers.modify_subscriber_steering_list,
    "pushSteeringToSubs": radio.push_steering_to_subs,
    "cleanSubscriberAllPackages": packages.clean_subscriber_all_packages,
    "resetSubsGzCounter": radio.reset_subs_gz_counter,
    "getSubscriberLocation": radio.get_subscriber_location,
    "getSubscriberLocationByCellId": radio.get_subscriber_location_by_cell_id,
    "changeSimStatus": subscribers.change_sim_status,
    "affectPackageToSubscriber": packages.affect_package_to_subscriber,
    "affectRecurringPackageToSubscriber": packages.affect_recurring_package_to_subscriber,
    "listSubscriberPrepaidPackages": packages.list_subscriber_prepaid_packages,
    "modifySubscriberPrepaidPackageLimits": packages.modify_subscriber_prepaid_package_limits,
    "modifySubscriberPrepaidPackageExpDate": packages.modify_subscriber_prepaid_package_exp_date,
    "modifySubscriberPrepaidPackageStatus": packages.modify_subscriber_prepaid_package_status,
    "stopResumeSubsRecurringPackage": packages.stop_resume_subs_recurring_package,
    "deleteSubscriberPackage": packages.delete_subscriber_package,
    "modifySubscriberPrepaidPackageActivePeriod": packages.modify_subscriber_prepaid_package_active_period,
    "modifySubscriberMobilePlan": subscribers.modify_subscriber_mobile_plan,
    "modifySubscriberVoipPlan": subscribers.modify_subscriber_voip_plan,
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
    **STATISTICS_METHODS,
    "sendMtSms": radio.send_mt_sms,
    "listNetworkProfile": zones.list_network_profile,
    "createLocationZone": zones.create_location_zone,
    "changeNetworkProfileOfLocationZone": zones.change_network_profile_of_location_zone,
}


def authenticate_caller(world: World, query: str, headers: Mapping[str, str], client: str) -> NetworkToken:
    """The token's record; the query wins over the header."""
    token = world.tokens.get(request_token(query, headers))
    if token is None:
        raise NetworkRefusal(NO_API_ACCOUNT, "no API account for this token")
    if token.addresses and client not in token.addresses:
        raise NetworkRefusal(ADDRESS_NOT_ALLOWED, "source address not authorised")
    return token


def request_token(query: str, headers: Mapping[str, str]) -> str:
    """The token as it came, or nothing."""
    found = parse_qs(query).get("token")
    if found:
        return found[0]
    scheme, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() if scheme.lower() in TOKEN_SCHEMES else ""
