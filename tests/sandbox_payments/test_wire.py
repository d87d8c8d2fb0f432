"""What all calls share: keys, accounts, parameters, repeated calls, lists, refusals."""

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest
import stripe

from simulators.processor import api
from tests.sandbox_payments.processor import DAY, SIMULATED_KEY, ClockedProcessor, processor_with_account


def error(answer: Any) -> dict[str, Any]:
    return json.loads(answer.body)["error"]


def test_a_call_without_the_key_or_with_another_is_refused() -> None:
    p = ClockedProcessor()
    assert p.call("GET", "/v1/balance").status == 401
    wrong = p.call("GET", "/v1/balance", headers={"authorization": "Bearer sk_test_somebody_else"})
    assert wrong.status == 401
    assert error(wrong) == {
        "message": "Invalid API Key provided: sk_test_************else",
        "type": "invalid_request_error",
        "request_log_url": error(wrong)["request_log_url"],
    }
    assert wrong.headers["request-id"].startswith("req_")


def test_an_account_that_is_not_connected_is_forbidden_whether_it_exists_or_not() -> None:
    p = ClockedProcessor()
    for account in ("acct_unknown", "acct_1"):
        with pytest.raises(stripe.PermissionError) as refused:
            p.v1.balance.retrieve(None, {"stripe_account": account})
        assert refused.value.http_status == 403
        with pytest.raises(stripe.PermissionError):
            p.v1.accounts.retrieve(account)
    assert error(p.last)["code"] == "account_invalid"


def test_an_unknown_path_is_not_found_as_the_real_one_says_it() -> None:
    p = ClockedProcessor()
    answer = p.post("/v1/unicorns")
    assert answer.status == 404
    assert error(answer)["message"].startswith("Unrecognized request URL (POST: /v1/unicorns).")
    assert p.call("DELETE", "/v1/charges/ch_1", headers={"authorization": f"Bearer {SIMULATED_KEY}"}).status == 404


@pytest.mark.parametrize(
    ("path", "body", "param", "code"),
    [
        ("/v1/accounts", "type=express&colour=red", "colour", "parameter_unknown"),
        ("/v1/accounts", "type=expres", "type", None),
        ("/v1/accounts", "type=express&email=nobody", "email", "email_invalid"),
        ("/v1/accounts", "type=express&country=XX", "country", None),
        ("/v1/accounts", "type=express&email=", "email", "parameter_invalid_empty"),
        ("/v1/accounts", "type=express&controller[stripe_dashboard][type]=express", "controller", None),
        ("/v1/accounts", "type[]=express", "type", None),
        ("/v1/account_links", "type=account_onboarding", "account", "parameter_missing"),
        ("/v1/account_links", "account=a&type=account_onboarding&return_url=x&refresh_url=x", "refresh_url", "url_invalid"),
        ("/v1/refunds", "amount=1", "charge", "parameter_missing"),
        ("/v1/refunds", "charge=ch_1&amount=ten", "amount", "parameter_invalid_integer"),
        ("/v1/refunds", "charge=ch_1&amount=0", "amount", "parameter_invalid_integer"),
        ("/v1/refunds", "charge=ch_1&reason=because", "reason", None),
        ("/v1/refunds", "charge=ch_1&refund_application_fee=yes", "refund_application_fee", None),
        ("/v1/refunds", "charge=ch_1&metadata[" + "k" * 41 + "]=v", "metadata", None),
        ("/v1/payouts", "currency=usd", "amount", "parameter_missing"),
        ("/v1/payouts", "amount=1&currency=doubloon", "currency", None),
        ("/v1/invoices", "", "customer", "parameter_missing"),
        ("/v1/invoices", "customer=cus_1", "customer", "resource_missing"),
        ("/v1/invoices", "customer=cus_1&days_until_due=3", "days_until_due", None),
        ("/v1/checkout/sessions", "mode=payment&success_url=https://a.example", "line_items", "parameter_missing"),
        ("/v1/checkout/sessions", "mode=payment&line_items[0][price]=price_1", "line_items[0][price]", "resource_missing"),
        ("/v1/checkout/sessions", "line_items[0][quantity]=1", "mode", "parameter_missing"),
        ("/v1/coupons", "amount_off=5", "currency", "parameter_missing"),
        ("/v1/coupons", "percent_off=120", "percent_off", None),
        ("/v1/promotion_codes", "coupon=c", "promotion", "parameter_missing"),
        ("/v1/radar/value_list_items", "value=v", "value_list", "parameter_missing"),
    ],
)
def test_a_wrong_parameter_is_named(path: str, body: str, param: str, code: str | None) -> None:
    answer = ClockedProcessor().post(path, body)
    assert answer.status == 400
    assert (error(answer)["type"], error(answer).get("param"), error(answer).get("code")) == ("invalid_request_error", param, code)


def test_an_unknown_parameter_inside_a_group_is_named_with_its_whole_path() -> None:
    p, account, _ = processor_with_account()
    body = "settings[payouts][schedule][interval]=daily&settings[payouts][schedule][colour]=red"
    answer = p.post(f"/v1/accounts/{account}", body)
    assert error(answer)["param"] == "settings[payouts][schedule][colour]"


def test_the_same_call_under_the_same_key_is_done_once_and_answered_alike() -> None:
    p = ClockedProcessor()
    first = p.post("/v1/accounts", "type=express", idempotency_key="k1")
    again = p.post("/v1/accounts", "type=express", idempotency_key="k1")
    assert (again.status, again.body) == (first.status, first.body)
    assert "idempotent-replayed" not in first.headers
    assert (again.headers["idempotent-replayed"], again.headers["original-request"]) == ("true", first.headers["request-id"])
    assert again.headers["request-id"] != first.headers["request-id"]
    assert len(p.state.accounts) == 2


def test_a_key_used_with_other_parameters_or_for_another_call_is_refused() -> None:
    p = ClockedProcessor()
    p.post("/v1/accounts", "type=express", idempotency_key="k1")
    for path, body in (("/v1/accounts", "type=standard"), ("/v1/customers", "type=express")):
        answer = p.post(path, body, idempotency_key="k1")
        assert (answer.status, error(answer)["type"]) == (400, "idempotency_error")


def test_a_key_means_nothing_in_another_account_and_is_forgotten_after_a_day() -> None:
    p, account, _ = processor_with_account()
    first = p.post("/v1/customers", "name=A", idempotency_key="k1")
    other = p.post("/v1/customers", "name=A", idempotency_key="k1", stripe_account=account)
    p.advance(DAY - 1)
    assert p.post("/v1/customers", "name=A", idempotency_key="k1").body == first.body != other.body
    p.advance(1)
    assert p.post("/v1/customers", "name=A", idempotency_key="k1").body != first.body


def test_a_refusal_that_was_begun_is_kept_and_one_of_the_parameters_is_not() -> None:
    p, account, _ = processor_with_account()
    charge = p.charge(account)
    body = f"charge={charge}&amount=5001"
    first = p.post("/v1/refunds", body, idempotency_key="k1", stripe_account=account)
    again = p.post("/v1/refunds", body, idempotency_key="k1", stripe_account=account)
    assert (first.status, error(first)["code"], again.headers["idempotent-replayed"]) == (400, "amount_too_large", "true")
    assert p.post("/v1/refunds", "amount=x", idempotency_key="k2", stripe_account=account).status == 400
    assert p.post("/v1/refunds", f"charge={charge}", idempotency_key="k2", stripe_account=account).status == 200


def test_lists_go_from_new_to_old_and_are_walked_by_cursors() -> None:
    p, _, at = processor_with_account()
    made: list[str] = []
    for number in range(7):
        p.advance(number % 2)  # some in one second
        made.insert(0, p.charge(at["stripe_account"], amount=1_000 + number))
    first = p.v1.charges.list({"limit": 3}, at)
    assert ([one.id for one in first.data], first.has_more, first.url) == (made[:3], True, "/v1/charges")
    rest = p.v1.charges.list({"limit": 4, "starting_after": made[2]}, at)
    assert ([one.id for one in rest.data], rest.has_more) == (made[3:], False)
    back = p.v1.charges.list({"limit": 2, "ending_before": made[3]}, at)
    assert ([one.id for one in back.data], back.has_more) == (made[1:3], True)
    assert [one.id for one in p.v1.charges.list({"limit": 2}, at).auto_paging_iter()] == made
    assert len(p.v1.charges.list({"created": {"gte": int(p.now)}}, at).data) == 2
    with pytest.raises(stripe.InvalidRequestError, match="No such charge: 'ch_x'"):
        p.v1.charges.list({"starting_after": "ch_x"}, at)
    with pytest.raises(stripe.InvalidRequestError, match="greater than or equal to 1"):
        p.v1.charges.list({"limit": 0}, at)
    with pytest.raises(stripe.InvalidRequestError, match="unknown parameter"):
        p.v1.charges.list({"colour": "red"}, at)


def test_what_one_account_holds_another_does_not_see() -> None:
    p = ClockedProcessor()
    mine, other = p.account(), p.account()
    charge = p.charge(mine)
    assert p.v1.charges.list(None, {"stripe_account": other}).data == []
    for options in ({"stripe_account": other}, {}):
        with pytest.raises(stripe.InvalidRequestError) as refused:
            p.v1.charges.retrieve(charge, None, options)
        assert (refused.value.http_status, refused.value.code, refused.value.param) == (404, "resource_missing", "id")


def test_another_version_of_the_api_is_refused() -> None:
    answer = ClockedProcessor().call(
        "GET", "/v1/balance", headers={"authorization": f"Bearer {SIMULATED_KEY}", "stripe-version": "2019-01-01"}
    )
    assert answer.status == 400


def test_every_code_of_a_refusal_is_one_that_the_library_knows() -> None:
    """The processor's codes are an open list of words; where no document names one, it is chosen at the code, and listed here."""
    chosen = {"invoice_number_in_use"}
    known = set(re.findall(r'"([a-z0-9_]+)"', inspect.getsource(stripe.Invoice.LastFinalizationError)))
    said = {code for path in Path(api.__file__).parent.glob("*.py") for code in re.findall(r'code="([a-z_]+)"', path.read_text())}
    assert len(said) > 10
    assert said - known == chosen
