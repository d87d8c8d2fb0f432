"""Settings: where they come from, which wins, and what stops a start."""

from pathlib import Path

import pytest

from registry.clock import SystemClock
from registry.ids import SystemIds
from transports.cli.serve import strict_transport
from transports.keyring import keyring_setting, open_keyring
from transports.settings import BadSettings, Settings
from transports.settings_files import load_settings, make_data_directory

PRODUCTION = {
    "SERVICE_ENV": "production",
    "SERVICE_DATABASE_URL": "postgresql://reseller:hidden-word@127.0.0.1/reseller",
    "SERVICE_SECRET_KEYS": "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
    "SERVICE_BASE_URL": "https://esim.example",
    "SERVICE_OCS_URL": "https://ocs.example/v1",
    "SERVICE_PAYMENTS_KEY": "sk_live_hidden_word_0123456789",
    "SERVICE_PAYMENTS_WEBHOOK_SECRET": "whsec_hidden-word-0123456789",
    "SERVICE_SMTP_URL": "smtps://mailer:hidden-word@mail.example",
    "SERVICE_MAIL_FROM": "Connectivity <noreply@esim.example>",
}


def refusal(given: dict[str, str]) -> str:
    with pytest.raises(BadSettings) as caught:
        load_settings(given)
    return str(caught.value)


def test_nothing_set_is_the_embedded_default_with_demo_data() -> None:
    settings = load_settings({})
    assert (settings.env, settings.host, settings.port, settings.embedded, settings.with_demo) == (
        "development",
        "127.0.0.1",
        8000,
        True,
        True,
    )
    assert settings.store_url == f"sqlite:///{Path('data/service.db').absolute()}"


def test_the_command_line_wins_over_the_environment_over_secret_files_over_the_env_file(tmp_path: Path) -> None:
    env_file, secrets = tmp_path / ".env", tmp_path / "secrets"
    secrets.mkdir()
    env_file.write_text('# ours\nexport SERVICE_PORT=1\nSERVICE_HOST="0.0.0.1"\nSERVICE_LOG=json\nSERVICE_BASE_URL=http://file\nOTHER=x\n')
    (secrets / "service_host").write_text("0.0.0.2\n")
    (secrets / "SERVICE_PORT").write_text("2\n")
    (secrets / "service_log").write_text("off\n")
    given = {"SERVICE_SECRETS_DIR": str(secrets), "SERVICE_PORT": "3", "SERVICE_HOST": "0.0.0.3", "PATH": "/bin"}
    settings = load_settings(given, env_file=env_file, port=4)
    assert (settings.port, settings.host, settings.log, settings.base_url) == (4, "0.0.0.3", "off", "http://file")


def test_an_empty_setting_is_none() -> None:
    assert load_settings({"SERVICE_PORT": "", "SERVICE_DEMO": ""}) == load_settings({})


def test_lists_are_separated_by_commas() -> None:
    settings = load_settings({"SERVICE_ALLOWED_HOSTS": "a.example, b.example,", "SERVICE_WEBHOOK_ALLOW_NETS": "127.0.0.0/8,fd00::/8"})
    assert settings.allowed_hosts == ("a.example", "b.example")
    assert [str(net) for net in settings.webhook_allow_nets] == ["127.0.0.0/8", "fd00::/8"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"SERVICE_PROT": "1"}, "unknown setting SERVICE_PROT; did you mean SERVICE_PORT? `reseller doctor` lists the known ones"),
        ({"SERVICE_PORT": "65536"}, "SERVICE_PORT: Input should be less than or equal to 65535"),
        ({"SERVICE_ENV": "prod"}, "SERVICE_ENV: Input should be 'development' or 'production'"),
        ({"SERVICE_WEBHOOK_ALLOW_NETS": "home"}, "SERVICE_WEBHOOK_ALLOW_NETS: 'home' does not appear to be an IPv4 or IPv6 network"),
        (
            {"SERVICE_DATABASE_URL": "mysql://u:hidden-word@h/d"},
            "SERVICE_DATABASE_URL must start with postgresql://; leave it out for SQLite in SERVICE_DATA",
        ),
        (
            {"SERVICE_AUTH_ISSUER": "https://login.example"},
            "SERVICE_AUTH_ISSUER and SERVICE_AUTH_JWKS_URL go together; set both or neither",
        ),
        (
            {"SERVICE_MCP_EVENTS": "2026-07-01"},
            "SERVICE_MCP_EVENTS must be 2026-02-19, the draft that this release speaks, or be left out for none",
        ),
    ],
    ids=["unknown", "range", "choice", "network", "scheme", "half", "draft"],
)
def test_a_setting_that_is_wrong_is_named(given: dict[str, str], message: str) -> None:
    assert refusal(given) == message


@pytest.mark.parametrize("name", ["SERVICE_INTERNAL_API_KEY", "SERVICE_STOREFRONT_API_KEY", "SERVICE_BRIDGE_WEBHOOK_SECRET"])
def test_a_shared_secret_that_can_be_guessed_is_refused(name: str) -> None:
    assert refusal({name: "  hidden-word-15b "}) == f"{name} has 15 characters; use 16 or more, as from `openssl rand -hex 24`"
    assert load_settings({name: "hidden-word-16-b"})


def test_space_around_a_secret_is_dropped_and_one_of_nothing_but_space_is_none() -> None:
    blank: dict[str, str] = dict.fromkeys(
        ("SERVICE_INTERNAL_API_KEY", "SERVICE_STOREFRONT_API_KEY", "SERVICE_SECRET_KEYS", "SERVICE_DATABASE_URL", "SERVICE_MCP_STATE_KEYS"),
        " \t ",
    )
    assert load_settings(blank) == load_settings({})
    assert load_settings({"SERVICE_INTERNAL_API_KEY": " hidden-word-16-b\n"}).internal_api_key.get_secret_value() == "hidden-word-16-b"
    assert refusal(PRODUCTION | {"SERVICE_SECRET_KEYS": "  "}).startswith("SERVICE_ENV=production needs SERVICE_SECRET_KEYS;")


@pytest.mark.parametrize(
    "address",
    [
        "esim.example",
        "ftp://esim.example",
        "https://",
        "https://user:hidden-word@esim.example",
        "https://esim.example/?a=1",
        "https://esim.example?",
        "https://esim.example/#top",
        "https://esim.example:65536",
        "https://esim.example:",
        "https://[:::]",
        "https://esim example",
        "https://esim.example\n",
        "https://esim.example\\@other.example",
        " ",
    ],
)
def test_a_base_url_that_is_no_plain_web_address_is_refused_and_not_repeated(address: str) -> None:
    assert refusal({"SERVICE_BASE_URL": address}) == (
        "SERVICE_BASE_URL must be http(s)://host[:port][/path] without user, query or fragment, for example https://esim.example"
    )


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:8000", "https://esim.example", "https://esim.example/", "http://[::1]:80/a/b-c/", "https://h/a%20b"]
)
def test_a_base_url_is_a_web_address(address: str) -> None:
    assert load_settings({"SERVICE_BASE_URL": address}).base_url == address


PAYMENTS = {name: PRODUCTION[name] for name in ("SERVICE_PAYMENTS_KEY", "SERVICE_PAYMENTS_WEBHOOK_SECRET")}
TOGETHER = "SERVICE_PAYMENTS_KEY and SERVICE_PAYMENTS_WEBHOOK_SECRET go together; set both or neither"


@pytest.mark.parametrize("alone", PAYMENTS)
def test_a_processors_key_and_its_webhook_secret_go_together(alone: str) -> None:
    assert refusal({alone: PAYMENTS[alone]}) == TOGETHER


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "SERVICE_PAYMENTS_KEY",
            "pk_live_0123456789",
            "must be a secret or restricted key: sk_test_..., sk_live_..., rk_test_... or rk_live_...",
        ),
        (
            "SERVICE_PAYMENTS_WEBHOOK_SECRET",
            "hunter2-hunter2",
            "must be whsec_..., as the processor shows it for the endpoint; several by comma",
        ),
        ("SERVICE_PAYMENTS_URL", "https://u:p@pay.example", "must be http(s)://host[:port]/path without user, query or fragment"),
    ],
)
def test_a_wrong_payment_setting_is_named_and_not_repeated(name: str, value: str, message: str) -> None:
    assert refusal(PAYMENTS | {name: value}) == f"{name} {message}"


def test_addresses_of_a_processor_without_a_key_are_refused() -> None:
    said = "SERVICE_PAYMENTS_URL, _CONNECT_URL and _CLIENT_ID are of no use without SERVICE_PAYMENTS_KEY"
    assert refusal({"SERVICE_PAYMENTS_CLIENT_ID": "ca_0123456789"}) == said


@pytest.mark.parametrize(
    ("given", "bps"), [({}, 100), ({"SERVICE_PLATFORM_FEE_BPS": "250"}, 250), ({"SERVICE_PLATFORM_FEE_BPS": "0"}, 0), (PAYMENTS, 0)]
)
def test_the_platform_fee_is_what_is_set_else_one_per_cent_where_payments_are_simulated(given: dict[str, str], bps: int) -> None:
    assert load_settings(given).fee_bps == bps


@pytest.mark.parametrize("name", ["SERVICE_BASE_URL", "SERVICE_AUTH_ISSUER", "SERVICE_AUTH_JWKS_URL", "SERVICE_PAYMENTS_URL"])
def test_in_production_addresses_that_tokens_travel_to_are_https(name: str) -> None:
    login = {"SERVICE_AUTH_ISSUER": "https://login.example", "SERVICE_AUTH_JWKS_URL": "https://login.example/jwks"}
    assert load_settings(PRODUCTION | login)
    message = f"{name} must start with https:// in production; tokens and keys travel over it"
    assert refusal(PRODUCTION | login | {name: "http://login.example"}) == message


@pytest.mark.parametrize(
    "missing",
    ["SERVICE_DATABASE_URL", "SERVICE_SECRET_KEYS", "SERVICE_SMTP_URL", "SERVICE_BASE_URL", "SERVICE_OCS_URL", "SERVICE_MAIL_FROM"],
)
def test_production_does_not_start_without(missing: str) -> None:
    given = {name: value for name, value in PRODUCTION.items() if name != missing}
    assert refusal(given) == f"SERVICE_ENV=production needs {missing}; nothing falls back to a simulation there"


def test_production_does_not_start_with_a_simulated_processor() -> None:
    given = {name: value for name, value in PRODUCTION.items() if name not in PAYMENTS}
    needs = "SERVICE_PAYMENTS_KEY, SERVICE_PAYMENTS_WEBHOOK_SECRET"
    assert refusal(given) == f"SERVICE_ENV=production needs {needs}; nothing falls back to a simulation there"


@pytest.mark.parametrize(("name", "value"), [("SERVICE_WEBHOOK_ALLOW_NETS", "127.0.0.0/8"), ("SERVICE_DEMO", "true")])
def test_production_does_not_start_with(name: str, value: str) -> None:
    assert refusal(PRODUCTION | {name: value}).startswith(f"{name} is for ")


def test_production_with_all_it_needs_starts_without_demo_data_and_shows_no_secret() -> None:
    settings = load_settings(PRODUCTION)
    assert (settings.embedded, settings.with_demo) == (False, False)
    assert not [word for word in ("hidden-word", "hidden_word", "AAECAwQF") if word in repr(settings)]


@pytest.mark.parametrize(
    ("settings", "address", "told"),
    [
        (PRODUCTION, "https://esim.example", (("strict-transport-security", "max-age=31536000"),)),
        (PRODUCTION, "http://esim.example", ()),
        ({"SERVICE_BASE_URL": "https://esim.example"}, "https://esim.example", ()),
        ({}, "http://127.0.0.1:8000", ()),
    ],
)
def test_browsers_are_told_to_stay_with_https_in_production_alone(settings: dict[str, str], address: str, told: object) -> None:
    assert strict_transport(load_settings(settings), address) == told


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        setattr(load_settings({}), "port", 1)  # noqa: B010  # an assignment would be refused by the type checker first


def test_the_keyring_of_the_embedded_default_is_made_once_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    settings, ids = load_settings({}, data=tmp_path / "data"), SystemIds(SystemClock())
    first = keyring_setting(settings, ids)
    assert keyring_setting(settings, ids) == first
    assert (tmp_path / "data" / "keyring").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["keyring"]
    assert open_keyring(first, settings, ids).seal("text", org_id="org_1", field="f").startswith(first.partition(":")[0] + ".")


def test_a_keyring_file_that_others_can_read_is_closed_to_them_and_said_aloud(tmp_path: Path) -> None:
    settings, ids, said = load_settings({}, data=tmp_path), SystemIds(SystemClock()), list[str]()
    first = keyring_setting(settings, ids, said.append)
    (tmp_path / "keyring").chmod(0o640)
    assert keyring_setting(settings, ids, said.append) == first
    assert (tmp_path / "keyring").stat().st_mode & 0o777 == 0o600
    assert said == [f"{tmp_path / 'keyring'} could be read by others and is closed to them now (mode 600)"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "SERVICE_SECRET_KEYS: key 1 of the keyring has no valid name before a colon"),
        ("k1:c2hvcnQ=", "SERVICE_SECRET_KEYS: key 'k1' of the keyring has 5 bytes; AES-256 takes 32"),
    ],
)
def test_a_keyring_that_is_none_is_a_setting_to_mend(text: str, message: str) -> None:
    settings, ids = load_settings({"SERVICE_SECRET_KEYS": text}), SystemIds(SystemClock())
    with pytest.raises(BadSettings) as caught:
        open_keyring(keyring_setting(settings, ids), settings, ids)
    assert str(caught.value).startswith(message)


def test_a_keyring_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    settings, ids = load_settings({}, data=tmp_path), SystemIds(SystemClock())
    path = tmp_path / "keyring"
    path.mkdir()
    with pytest.raises(BadSettings, match=r"/keyring: the keyring cannot be read or made \(Is a directory\)"):
        keyring_setting(settings, ids)
    path.rmdir()
    path.write_bytes(b"k1:\xff")
    with pytest.raises(BadSettings, match="/keyring: the keyring is not text"):
        keyring_setting(settings, ids)


def test_a_database_elsewhere_needs_a_keyring_that_is_given_and_no_directory(tmp_path: Path) -> None:
    settings = load_settings({"SERVICE_DATABASE_URL": "postgresql://127.0.0.1/reseller"}, data=tmp_path / "data")
    make_data_directory(settings)
    assert not (tmp_path / "data").exists()
    with pytest.raises(BadSettings, match=r"^SERVICE_SECRET_KEYS: missing"):
        keyring_setting(settings, SystemIds(SystemClock()))


def test_every_setting_says_what_it_means() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        (
            {"SERVICE_OCS_URL": "https://u:p@ocs.example/v1"},
            "SERVICE_OCS_URL must be http(s)://host[:port]/path without user, query or fragment",
        ),
        ({"SERVICE_OCS_URL": "https://ocs.example/api"}, "SERVICE_OCS_URL must end in /v1"),
        ({"SERVICE_OCS_TOKEN": "a-token"}, "SERVICE_OCS_TOKEN and SERVICE_OCS_STATISTICS_URL are of no use without SERVICE_OCS_URL"),
        ({"SERVICE_OCS_ZONE_METHOD": "drop table"}, "SERVICE_OCS_ZONE_METHOD must be a name of letters, digits and _"),
        ({"SERVICE_BRIDGE_WEBHOOK_SECRET": "not base64 at all!"}, "SERVICE_BRIDGE_WEBHOOK_SECRET must be base64"),
    ],
    ids=["userinfo", "version", "token", "method", "bridge"],
)
def test_a_wrong_upstream_setting_is_named_with_its_rule(given: dict[str, str], rule: str) -> None:
    said = refusal(given)
    assert said.startswith(rule)
    assert "u:p@" not in said and "a-token" not in said and "at all" not in said
