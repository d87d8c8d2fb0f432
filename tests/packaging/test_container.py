"""Dockerfile and compose file, read: there is no container engine here to try them with.

hadolint 2.15 finds nothing in the one, and the schema of compose files nothing in the other; neither is part of this test.
"""

import re
import shlex
from pathlib import Path
from typing import Any, cast

import pytest
import typer
import yaml

from tests.harness.processes import ROOT
from transports.cli.main import make_app
from transports.readiness import READY_PATH
from transports.settings import SETTING_PREFIX, Settings
from transports.settings_files import load_settings
from transports.version import VERSION

DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
OURS = ("upgrade", "server", "worker")
KNOWN = {f"{SETTING_PREFIX}{name.upper()}" for name in Settings.model_fields} | {"SERVICE_SECRETS_DIR"}
GIVEN = {
    "service_database_url": "postgresql://reseller:secret@database/reseller",
    "service_secret_keys": "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
    "service_bridge_webhook_secret": "5f0c1d7be2a94630f1b8c27a90d4e6b35a81c9f2d3e4a5b6",
    "service_ocs_token": "token",
    "service_payments_key": "sk_live_0123456789",
    "service_payments_webhook_secret": "whsec_0123456789",
    "service_smtp_url": "smtps://user:password@mail.example",
}


def is_command(words: list[str]) -> bool:
    found: Any = typer.main.get_command(make_app(words))
    for word in words:
        found = cast("dict[str, Any]", getattr(found, "commands", {})).get(word)
    return found is not None


def filled(value: object) -> str:
    """As compose fills a value in where nothing is set but what has to be."""
    named = {
        "SERVICE_BASE_URL": "https://esim.example",
        "SERVICE_OCS_URL": "https://ocs.example/v1",
        "SERVICE_MAIL_FROM": "no@esim.example",
    }
    return re.sub(r"\$\{(\w+)(:-([^}]*)|:\?[^}]*)?\}", lambda found: named.get(found[1], found[3] or ""), str(value))


def test_every_setting_that_is_named_exists() -> None:
    named = set(re.findall(r"SERVICE_[A-Z_]*[A-Z]", DOCKERFILE + (ROOT / "compose.yaml").read_text()))
    assert named - KNOWN == set()
    assert {name.upper() for name in COMPOSE["secrets"]} - KNOWN == {"POSTGRES_PASSWORD"}


@pytest.mark.parametrize("name", ["database", *OURS])
def test_no_container_may_do_more_than_it_needs(name: str) -> None:
    service = COMPOSE["services"][name]
    assert (service["read_only"], service["cap_drop"], service["security_opt"]) == (True, ["ALL"], ["no-new-privileges:true"])
    assert service["mem_limit"] and service["pids_limit"] and "privileged" not in service


def test_the_database_has_no_port_no_default_password_and_no_root() -> None:
    database = COMPOSE["services"]["database"]
    assert "ports" not in database and database["networks"] == ["inside"] and COMPOSE["networks"]["inside"] == {"internal": True}
    assert "POSTGRES_PASSWORD" not in database["environment"] and database["environment"]["POSTGRES_PASSWORD_FILE"].startswith(
        "/run/secrets/"
    )
    assert database["user"] == "999:999" and "trust" not in str(database)
    assert "--auth-local=scram-sha-256" in database["environment"]["POSTGRES_INITDB_ARGS"]


@pytest.mark.parametrize("name", OURS)
def test_production_starts_with_what_a_service_is_given(name: str, tmp_path: Path) -> None:
    service = COMPOSE["services"][name]
    assert is_command(service["command"])
    assert set(service["secrets"]) == set(GIVEN)
    for secret in service["secrets"]:
        (tmp_path / secret).write_text(GIVEN[secret] + "\n")
    environment = {setting: filled(value) for setting, value in service["environment"].items()}
    assert environment.pop("SERVICE_SECRETS_DIR") == "/run/secrets"
    settings = load_settings({**environment, "SERVICE_SECRETS_DIR": str(tmp_path)})
    assert settings.env == "production"


def test_no_secret_has_a_value_of_its_own() -> None:
    assert all(set(secret) == {"file"} and secret["file"] == f"./secrets/{name}" for name, secret in COMPOSE["secrets"].items())
    environments = [service.get("environment", {}) for service in COMPOSE["services"].values()]
    secret = {name for name, field in Settings.model_fields.items() if hasattr(field.default, "get_secret_value")}
    assert {name for each in environments for name in each} & {f"{SETTING_PREFIX}{name.upper()}" for name in secret} == set()
    assert "POSTGRES_PASSWORD" not in environments[0]
    assert "/secrets/" in (ROOT / ".gitignore").read_text().splitlines()


def test_everything_waits_for_what_it_needs_and_only_the_server_is_seen() -> None:
    services = COMPOSE["services"]
    waits = {name: {other: how["condition"] for other, how in service.get("depends_on", {}).items()} for name, service in services.items()}
    healthy = {"database": "service_healthy"}
    assert waits == {"database": {}, "upgrade": healthy, "server": healthy, "worker": healthy}
    assert {name: service.get("ports", []) for name, service in services.items() if "ports" in service} == {
        "server": ["127.0.0.1:8000:8000"]
    }
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    assert services["database"]["networks"] == ["inside"]


def test_the_schema_is_changed_by_a_step_of_its_own_before_the_containers_are_replaced() -> None:
    assert [name for name, service in COMPOSE["services"].items() if "profiles" in service] == ["upgrade"]
    guide = (ROOT / "docs" / "guide-operators.md").read_text().partition("To upgrade, ")[2]
    order = ["docker compose build", "docker compose run --rm upgrade", "docker compose up -d --wait"]
    places = [guide.index(f"\n{step}\n") for step in order]
    assert places == sorted(places)


def test_containers_are_healthy_when_their_process_is_ready() -> None:
    check = DOCKERFILE[DOCKERFILE.index("HEALTHCHECK ") : DOCKERFILE.index("ENTRYPOINT")]
    worker, port = COMPOSE["services"]["worker"], COMPOSE["services"]["worker"]["environment"]["SERVICE_METRICS_PORT"]
    assert READY_PATH in check and f"http://127.0.0.1:{port}{READY_PATH}" in worker["healthcheck"]["test"][-1]
    assert COMPOSE["services"]["server"].get("healthcheck") is None  # the image's own


def test_the_image_is_this_version_for_a_user_who_is_not_root() -> None:
    assert COMPOSE["services"]["server"]["image"] == f"reseller:{VERSION}"
    assert f'version="{VERSION}"' in DOCKERFILE
    lines = [line for line in DOCKERFILE.splitlines() if re.match(r"[A-Z]+ ", line)]
    bases = [line for line in lines if line.startswith("FROM ")]
    assert all(re.match(r"FROM python:3\.11-slim-\w+", base) for base in bases) and len(bases) == 2
    last = lines[lines.index(bases[1]) :]
    assert [line for line in last if line.startswith("USER ")] == ["USER 10001:10001"]
    assert {"VOLUME /data", "STOPSIGNAL SIGTERM", "EXPOSE 8000", 'ENTRYPOINT ["reseller"]', 'CMD ["serve"]'} <= set(last)
    assert any(line.startswith("HEALTHCHECK ") for line in last) and "/health" in DOCKERFILE
    assert "--require-hashes" in DOCKERFILE and "compileall" in DOCKERFILE


def test_what_is_copied_is_let_in_and_is_there() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    copied = [word for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE) for word in shlex.split(line)[:-1]]
    assert sorted(copied) == sorted(line.removeprefix("!") for line in ignored if line.startswith("!"))
    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert "*" in ignored
