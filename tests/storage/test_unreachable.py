"""Why PostgreSQL cannot be reached: the class in our words, never the server's text, which names hosts, users and databases."""

from collections.abc import Callable
from urllib.parse import urlsplit

import psycopg
import pytest

from registry.errors import StoreUnavailable
from storage.database_state import sealed_key_ids
from storage.engine.database_url import NO_CONNECTION_LEFT, unreachable
from storage.engine.migrate import current_revision, upgrade_database

CANNOT = "the database cannot be reached: "
WAYS: list[Callable[[str], object]] = [current_revision, sealed_key_ids, upgrade_database]
ADDRESSES = [
    ("postgresql://jo:hidden@127.0.0.1:1/shop", CANNOT + "the connection was refused; nothing listens at that host and port"),
    ("postgresql://jo:hidden@shop.invalid/shop", CANNOT + "its host name is not known"),
    ("postgresql://jo:hidden@/shop?host=/nowhere", CANNOT + "nothing listens at that socket"),
    ("postgresql://jo:hidden%zz@127.0.0.1/shop", "SERVICE_DATABASE_URL cannot be read: postgresql://user:password@host:port/name, "),
    ("postgresql://jo:hidden@127.0.0.1:99999/shop", "SERVICE_DATABASE_URL cannot be read: "),
]


@pytest.mark.parametrize("way", WAYS, ids=["revision", "keyring", "upgrade"])
@pytest.mark.parametrize(("url", "said"), ADDRESSES, ids=["refused", "name", "socket", "escape", "port"])
def test_a_server_that_cannot_be_reached_is_told_by_its_class(url: str, said: str, way: Callable[[str], object]) -> None:
    with pytest.raises(StoreUnavailable) as refusal:
        way(url)
    assert refusal.value.message.startswith(said)
    assert "hidden" not in refusal.value.message and "shop" not in refusal.value.message and "jo" not in refusal.value.message


@pytest.mark.postgres
@pytest.mark.parametrize("way", WAYS, ids=["revision", "keyring", "upgrade"])
def test_what_a_living_server_refuses_is_told_by_its_class(postgres: str, way: Callable[[str], object]) -> None:
    parts = urlsplit(postgres)
    query = f"?{parts.query}" if parts.query else ""
    for url, said in (
        (f"{parts.scheme}://{parts.netloc}/no_such_shop{query}", CANNOT + "there is no database of that name on the server"),
        (f"{postgres}{'&' if query else '?'}user=nobody_we_know", CANNOT + "the server does not know the user"),
    ):
        with pytest.raises(StoreUnavailable) as refusal:
            way(url)
        assert refusal.value.message == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('FATAL:  password authentication failed for user "jo"', "the password or the user was rejected"),
        ("fe_sendauth: no password supplied", "the server asks for a password, and none is given"),
        (
            'FATAL:  no pg_hba.conf entry for host "10.0.0.1", user "jo", database "shop", no encryption',
            "the server does not admit this user from this machine, or only with TLS (its pg_hba.conf says whom)",
        ),
        ("server does not support SSL, but SSL was required", "TLS failed: the server does not offer it"),
        ("SSL error: certificate verify failed", "TLS failed: the certificate was not accepted"),
        ('root certificate file "/root.crt" does not exist', "TLS failed: the certificate was not accepted"),
        ("connection timeout expired", "it did not answer in time"),
        ("FATAL:  sorry, too many clients already", NO_CONNECTION_LEFT),
        ('FATAL:  too many connections for role "jo"', NO_CONNECTION_LEFT),
        ("FATAL:  something new about shop", "the server's log may say why"),
    ],
)
def test_the_servers_words_are_classed_and_not_repeated(text: str, said: str) -> None:
    assert unreachable(psycopg.OperationalError(f"connection failed: {text}")).message == CANNOT + said
