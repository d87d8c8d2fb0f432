"""The settings of a model: what goes together, and what is never repeated."""

import pytest

from registry.clock import SystemClock
from transports.service import open_model
from transports.settings import BadSettings
from transports.settings_files import load_settings

GIVEN = {"SERVICE_MODEL_URL": "https://models.example/v1", "SERVICE_MODEL_NAME": "small-1, large-1", "SERVICE_MODEL_KEY": "sk-secret"}


def refusal(given: dict[str, str]) -> str:
    with pytest.raises(BadSettings) as caught:
        load_settings(given)
    return str(caught.value)


def test_a_model_is_an_address_names_and_a_key_that_is_shown_nowhere() -> None:
    settings = load_settings(GIVEN)
    model = open_model(settings, SystemClock())
    assert model is not None and model.names == ("small-1", "large-1")
    assert "sk-secret" not in repr(settings) + repr(model) + str(vars(model))


def test_without_an_address_there_is_none() -> None:
    assert open_model(load_settings({}), SystemClock()) is None


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"SERVICE_MODEL_URL": ""}, "SERVICE_MODEL_URL and SERVICE_MODEL_NAME go together"),
        ({"SERVICE_MODEL_NAME": ""}, "SERVICE_MODEL_URL and SERVICE_MODEL_NAME go together"),
        ({"SERVICE_MODEL_URL": "", "SERVICE_MODEL_NAME": ""}, "SERVICE_MODEL_URL and SERVICE_MODEL_NAME go together"),
        ({"SERVICE_MODEL_URL": "https://u:p@models.example/v1"}, "SERVICE_MODEL_URL must be http(s)://host[:port]/path without user"),
        ({"SERVICE_MODEL_URL": "https://models.example/v1?key=k3y"}, "SERVICE_MODEL_URL must be http(s)://host[:port]/path without user"),
        ({"SERVICE_MODEL_URL": "https://models.example/v1/chat/completions"}, "SERVICE_MODEL_URL must end before /chat/completions"),
        ({"SERVICE_MODEL_NAME": "a model"}, "SERVICE_MODEL_NAME must be names of letters"),
        ({"SERVICE_MODEL_KEY": "sk-secret\nX-Other: 1"}, "SERVICE_MODEL_KEY must be printable ASCII"),
    ],
)
def test_a_wrong_setting_is_named_with_its_rule_and_not_repeated(changed: dict[str, str], rule: str) -> None:
    said = refusal({**GIVEN, **changed})
    assert said.startswith(rule)
    assert not any(secret in said for secret in ("sk-secret", "u:p@", "k3y"))


def test_in_production_the_key_travels_over_https_only() -> None:
    needed = {
        "SERVICE_ENV": "production",
        "SERVICE_DATABASE_URL": "postgresql://127.0.0.1/reseller",
        "SERVICE_SECRET_KEYS": "k1:x",
        "SERVICE_BASE_URL": "https://esim.example",
        "SERVICE_OCS_URL": "https://ocs.example/v1",
        "SERVICE_PAYMENTS_KEY": "sk_test_12345678",
        "SERVICE_PAYMENTS_WEBHOOK_SECRET": "whsec_12345678",
        "SERVICE_SMTP_URL": "smtps://mail.example",
        "SERVICE_MAIL_FROM": "a@esim.example",
    }
    assert load_settings(needed).model_url == ""
    said = refusal({**needed, **GIVEN, "SERVICE_MODEL_URL": "http://models.example/v1"})
    assert said.startswith("SERVICE_MODEL_URL must start with https:// in production")
