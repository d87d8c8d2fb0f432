"""The whole matrix of session tokens: who is believed, and who is not."""

import json

import pytest
from cryptography.hazmat.primitives import serialization

from clients.identity.jwks import JwksCache
from clients.identity.session_tokens import AudienceRule, HttpAudience, McpAudience, TokenClaims, TokenRefused, TokenVerifier
from tests.clients.clock import ManualClock
from tests.clients.identity.provider import (
    EC_KEY,
    ISSUER,
    NOW,
    OTHER_RSA_KEY,
    RSA_KEY,
    KeysProvider,
    b64,
    claims,
    ec_jwk,
    rsa_jwk,
    signed_token,
)

RESOURCE = "https://api.example.com/mcp"
HTTP = HttpAudience("https://api.example.com", frozenset({"https://app.example.com"}))
MCP = McpAudience(RESOURCE)
DAY = 24 * 3600


def verifier(provider: KeysProvider | None = None, clock: ManualClock | None = None) -> TokenVerifier:
    clock = clock or ManualClock(NOW)
    return TokenVerifier(ISSUER, JwksCache(provider or KeysProvider(rsa_jwk("rsa-1"), ec_jwk("ec-1")), clock.monotonic), clock.now)


async def refusal(token: str, rule: AudienceRule = HTTP) -> TokenRefused:
    with pytest.raises(TokenRefused) as refused:
        await verifier().verify(token, rule)
    reason = str(refused.value)
    assert not any(part in reason for part in token.split(".") if len(part) > 8)
    return refused.value


async def test_a_good_session_is_believed_with_either_algorithm() -> None:
    expected = TokenClaims("user_1", ISSUER, None, NOW - 10, NOW + 600)
    assert await verifier().verify(signed_token(claims()), HTTP) == expected
    assert await verifier().verify(signed_token(claims(), kid="ec-1", alg="ES256", key=EC_KEY), HTTP) == expected


@pytest.mark.parametrize(
    ("more", "organisation"),
    [
        ({"org_id": "org_1"}, "org_1"),
        ({"o": {"id": "org_2", "rol": "admin"}}, "org_2"),
        ({"org_id": "org_1", "o": {"id": "org_2"}}, "org_1"),
        ({"org_id": 7}, None),
        ({"org_id": ""}, None),
        ({"o": "org_2"}, None),
        ({"o": {"id": ["org_2"]}}, None),
    ],
)
async def test_the_organisation_is_a_hint_of_either_kind(more: dict[str, object], organisation: str | None) -> None:
    assert (await verifier().verify(signed_token(claims(**more)), HTTP)).organisation == organisation


@pytest.mark.parametrize(
    "token", ["", ".", "..", "...", "a.b", "a.b.c", "ak_1234567890", "é.é.é", "\udc80.b.c", "e30.e30.", "bnVsbA.e30.e30"]
)
async def test_what_is_no_signed_token_is_refused(token: str) -> None:
    assert (await refusal(token)).code == "unauthorized"


async def test_an_unsigned_token_is_refused() -> None:
    for alg in ("none", "None", "NONE", None, "", 7, ["RS256"]):
        head = b64(json.dumps({"alg": alg, "kid": "rsa-1"}).encode())
        await refusal(f"{head}.{b64(json.dumps(claims()).encode())}.")


async def test_a_token_signed_with_the_public_key_as_a_shared_secret_is_refused() -> None:
    public = RSA_KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    await refusal(signed_token(claims(), alg="HS256", key=public))


async def test_an_algorithm_that_is_not_the_published_keys_own_is_refused() -> None:
    await refusal(signed_token(claims(), kid="ec-1"))
    await refusal(signed_token(claims(), alg="ES256", key=EC_KEY))
    await refusal(signed_token(claims(), alg="RS512"))
    await refusal(signed_token(claims(), alg="PS256"))


async def test_a_foreign_signature_an_altered_payload_or_none_is_refused() -> None:
    good = signed_token(claims())
    head, _, signature = good.split(".")
    await refusal(signed_token(claims(), key=OTHER_RSA_KEY))
    await refusal(f"{head}.{b64(json.dumps(claims(sub='user_2')).encode())}.{signature}")
    await refusal(good.rpartition(".")[0] + ".")
    await refusal(good + ".x")
    await refusal(good + "\n")


@pytest.mark.parametrize("iss", [ISSUER + "/", "https://evil.example.com", "", None, [ISSUER], 7])
async def test_another_issuer_is_refused(iss: object) -> None:
    await refusal(signed_token(claims(iss=iss)))


@pytest.mark.parametrize("name", ["exp", "iat"])
@pytest.mark.parametrize("value", [None, str(NOW + 60), True, [], {}, 10**30, -1, 0, float("nan"), float("inf"), 10**400])
async def test_a_time_that_is_no_plain_number_is_refused(name: str, value: object) -> None:
    assert (await refusal(signed_token(claims(**{name: value})))).code == "unauthorized"


@pytest.mark.parametrize("value", ["0", True, float("nan"), [], 10**30])
async def test_a_start_that_is_no_plain_number_is_refused(value: object) -> None:
    await refusal(signed_token(claims(nbf=value)))


async def test_a_number_too_long_to_read_is_refused() -> None:
    await refusal(signed_token(json.dumps(claims()).encode().replace(str(NOW + 600).encode(), b"9" * 5000)))


async def test_an_expired_token_has_its_own_code_and_five_seconds_of_leeway() -> None:
    assert (await refusal(signed_token(claims(exp=NOW - 5)))).code == "token_expired"
    assert (await verifier().verify(signed_token(claims(exp=NOW - 4)), HTTP)).expires_at == NOW - 4


@pytest.mark.parametrize("name", ["nbf", "iat"])
async def test_a_token_of_the_future_is_refused_beyond_five_seconds(name: str) -> None:
    assert (await refusal(signed_token(claims(**{name: NOW + 6})))).code == "unauthorized"
    await verifier().verify(signed_token(claims(**{name: NOW + 5})), HTTP)


async def test_a_token_may_live_a_day_and_no_longer() -> None:
    await verifier().verify(signed_token(claims(iat=NOW, exp=NOW + DAY)), HTTP)
    await refusal(signed_token(claims(iat=NOW, exp=NOW + DAY + 1)))


@pytest.mark.parametrize("sub", [None, "", 7, True, ["user_1"], "u" * 256, "user\n1"])
async def test_a_token_without_a_proper_subject_is_refused(sub: object) -> None:
    await refusal(signed_token(claims(sub=sub)))


@pytest.mark.parametrize("kid", [None, "", 7, "../../etc/passwd", "' OR 1=1 --", "k" * 201, "k" * 7000, "rsa-1\n", "ключ", "rsa 1"])
async def test_an_odd_key_id_is_refused_without_asking_the_provider(kid: object) -> None:
    provider = KeysProvider(rsa_jwk("rsa-1"))
    with pytest.raises(TokenRefused):
        await verifier(provider).verify(signed_token(claims(), kid=kid), HTTP)
    assert provider.reads == 0


async def test_keys_and_addresses_of_keys_in_the_header_are_ignored() -> None:
    address, theirs = "http://127.0.0.1:9/keys", rsa_jwk("rsa-1", OTHER_RSA_KEY)
    await refusal(signed_token(claims(), key=OTHER_RSA_KEY, jku=address, x5u=address, jwk=theirs))
    honest = signed_token(claims(), jku=address, x5u=address, jwk=theirs)
    assert (await verifier().verify(honest, HTTP)).subject == "user_1"


@pytest.mark.parametrize("crit", [["exp"], ["b64"], [], "exp", 7])
async def test_a_header_extension_is_refused(crit: object) -> None:
    await refusal(signed_token(claims(), crit=crit))
    await refusal(signed_token(claims(), crit=["b64"], b64=False))
    await refusal(signed_token(claims(), b64=True))


async def test_repeated_members_deep_nesting_and_other_json_are_refused() -> None:
    good = json.dumps(claims())
    await refusal(signed_token(good.replace('"sub"', '"sub": "admin", "sub"').encode()))
    for payload in (b"[]", b"null", b'"text"', b"", b"\xff", b"[" * 5000):
        await refusal(signed_token(payload))
    await refusal(f"{b64(b'[' * 5000)}.e30.e30")
    await refusal(f"""{b64(b'{"alg":"none","alg":"RS256","kid":"rsa-1"}')}.e30.e30""")


async def test_a_token_over_8_kib_is_refused_before_it_is_read() -> None:
    provider = KeysProvider(rsa_jwk("rsa-1"))
    with pytest.raises(TokenRefused, match="longer than 8192"):
        await verifier(provider).verify(signed_token(claims(pad="x" * 8192)), HTTP)
    assert provider.reads == 0


@pytest.mark.parametrize(
    ("changes", "good"),
    [
        ({}, True),
        ({"aud": "https://api.example.com"}, True),
        ({"aud": ["https://other.example.com", "https://api.example.com"]}, True),
        ({"aud": "https://api.example.com", "azp": "https://evil.example.com"}, True),
        ({"azp": None}, False),
        ({"azp": "https://evil.example.com"}, False),
        ({"azp": ["https://app.example.com"]}, False),
        ({"aud": "https://other.example.com"}, False),
        ({"aud": "https://api.example.com/"}, False),
        ({"aud": RESOURCE}, False),
        ({"aud": []}, False),
        ({"aud": ""}, False),
        ({"aud": ["https://api.example.com", 7]}, False),
        ({"aud": {"https://api.example.com": 1}}, False),
        ({"aud": 7}, False),
    ],
)
async def test_over_http_a_token_is_for_our_audience_or_without_one_for_our_application(changes: dict[str, object], good: bool) -> None:
    if good:
        await verifier().verify(signed_token(claims(**changes)), HTTP)
    else:
        await refusal(signed_token(claims(**changes)))


async def test_an_explicit_null_audience_is_not_a_missing_one() -> None:
    await refusal(signed_token({**claims(), "aud": None}))


async def test_with_nothing_configured_every_audience_and_party_is_refused() -> None:
    nothing = HttpAudience()
    for changes in ({}, {"aud": ""}, {"azp": ""}, {"azp": None}, {"aud": "https://api.example.com"}):
        await refusal(signed_token(claims(**changes)), nothing)
    await refusal(signed_token(claims(aud="")), HttpAudience(""))
    await refusal(signed_token(claims(aud="")), McpAudience(""))


@pytest.mark.parametrize("aud", [RESOURCE, [RESOURCE], ["https://api.example.com", RESOURCE]])
async def test_over_mcp_a_token_names_exactly_the_resource(aud: object) -> None:
    assert (await verifier().verify(signed_token(claims(aud=aud)), MCP)).subject == "user_1"


@pytest.mark.parametrize(
    "aud",
    [
        None,
        "",
        [],
        RESOURCE + "/",
        RESOURCE + "/x",
        RESOURCE + "?a",
        RESOURCE[:-1],
        RESOURCE.upper(),
        "https://api.example.com",
        "https://api.example.com/",
        "https://other.example.com/mcp",
        [RESOURCE + "/"],
        [[RESOURCE]],
    ],
)
async def test_over_mcp_a_missing_foreign_or_similar_audience_is_refused(aud: object) -> None:
    await refusal(signed_token(claims(aud=aud)), MCP)


async def test_the_issuer_must_be_configured() -> None:
    with pytest.raises(ValueError, match="issuer"):
        TokenVerifier("", JwksCache(KeysProvider(), ManualClock().monotonic), ManualClock().now)


async def test_a_provider_that_was_never_reached_refuses_with_a_reason() -> None:
    provider = KeysProvider()
    provider.down = True
    with pytest.raises(TokenRefused, match="cannot be read now") as refused:
        await verifier(provider).verify(signed_token(claims()), HTTP)
    assert refused.value.code == "unauthorized"
