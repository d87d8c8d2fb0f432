"""Secrets at rest open only where they were sealed."""

import base64
from collections.abc import Callable

import pytest

from registry.errors import KeyUnknown
from storage.sealing import Keyring, WrongSeal, new_key_setting


def counting() -> Callable[[int], bytes]:
    calls = iter(range(1, 1000))
    return lambda count: next(calls).to_bytes(count, "big")


def key(fill: int, length: int = 32) -> str:
    return base64.b64encode(bytes([fill]) * length).decode()


OLD, NEW = f"old:{key(1)}", f"new:{key(2)}"


def test_what_was_sealed_opens_for_its_organisation_and_field() -> None:
    ring = Keyring(OLD, counting())
    sealed = ring.seal("LPA:1$smdp$ä", org_id="org_a", field="intent.esim")
    assert ring.open(sealed, org_id="org_a", field="intent.esim") == "LPA:1$smdp$ä"
    assert "smdp" not in sealed
    assert sealed.startswith("old.")
    assert len(sealed.split(".")) == 3


def test_the_ciphertexts_of_two_organisations_cannot_be_swapped() -> None:
    ring = Keyring(OLD, counting())
    ours = ring.seal("ours", org_id="org_a", field="token")
    theirs = ring.seal("theirs", org_id="org_b", field="token")
    with pytest.raises(WrongSeal):
        ring.open(theirs, org_id="org_a", field="token")
    with pytest.raises(WrongSeal):
        ring.open(ours, org_id="org_b", field="token")
    with pytest.raises(WrongSeal):
        ring.open(ours, org_id="org_a", field="secret")


def test_a_changed_ciphertext_does_not_open() -> None:
    ring = Keyring(OLD, counting())
    key_id, nonce, ciphertext = ring.seal("text", org_id="o", field="f").split(".")
    with pytest.raises(WrongSeal):
        ring.open(f"{key_id}.{nonce}.{'B' if ciphertext[0] == 'A' else 'A'}{ciphertext[1:]}", org_id="o", field="f")


def test_the_same_text_is_never_sealed_alike() -> None:
    ring = Keyring(OLD, counting())
    assert len({ring.seal("text", org_id="o", field="f") for _ in range(20)}) == 20


def test_after_a_rotation_the_new_key_seals_and_both_open() -> None:
    sealed = Keyring(OLD, counting()).seal("text", org_id="o", field="f")
    ring = Keyring(f"{NEW}, {OLD}", counting())
    assert ring.open(sealed, org_id="o", field="f") == "text"
    resealed = ring.seal("text", org_id="o", field="f")
    assert resealed.startswith("new.")


def test_a_key_that_is_gone_is_named() -> None:
    sealed = Keyring(OLD, counting()).seal("text", org_id="o", field="f")
    named: list[str] = []
    with pytest.raises(KeyUnknown) as unknown:
        Keyring(NEW, counting(), tell_missing=named.append).open(sealed, org_id="o", field="f")
    assert (unknown.value.key_id, named) == ("old", ["old"])


def test_a_key_that_the_setting_has_gained_opens_and_does_not_seal() -> None:
    sealed = Keyring(NEW, counting()).seal("text", org_id="o", field="f")
    ring = Keyring(OLD, counting(), read_changed=lambda: f"{NEW},{OLD}")
    assert ring.open(sealed, org_id="o", field="f") == "text"
    assert ring.key_ids == ("old", "new")
    assert ring.seal("text", org_id="o", field="f").startswith("old.")


def test_a_setting_that_is_being_written_changes_nothing() -> None:
    ring = Keyring(OLD, counting(), read_changed=lambda: "new:AAA")
    assert ring.learn() == () and ring.key_ids == ("old",)


def test_a_value_of_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match="three parts"):
        Keyring(OLD, counting()).open("plain", org_id="o", field="f")


def test_a_separator_cannot_be_smuggled_into_the_binding() -> None:
    with pytest.raises(ValueError, match=r"\|"):
        Keyring(OLD, counting()).seal("text", org_id="a|b", field="c")


def test_a_new_key_has_the_form_of_the_setting_and_its_own_name() -> None:
    random_bytes = counting()
    first, second = new_key_setting(random_bytes), new_key_setting(random_bytes)
    assert first.split(":")[0] != second.split(":")[0]
    ring = Keyring(f"{first},{second}", random_bytes)
    assert ring.open(ring.seal("text", org_id="o", field="f"), org_id="o", field="f") == "text"


def test_a_keyring_never_shows_its_keys() -> None:
    ring = Keyring(OLD, counting())
    assert repr(ring) == "Keyring(old)"
    assert key(1) not in f"{ring} {ring!r} {ring.__reduce_ex__}"


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("", "key 1 of the keyring has no valid name"),
        (key(1), "key 1 of the keyring has no valid name"),
        (f"{OLD},a.b:{key(2)}", "key 2 of the keyring has no valid name"),
        (f"old:{key(1, 16)}", "'old' of the keyring has 16 bytes"),
        ("old:not base64!", "'old' of the keyring is not base64"),
        (f"{OLD},old:{key(2)}", "names 'old' twice"),
    ],
)
def test_a_bad_keyring_is_refused_without_showing_key_material(setting: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        Keyring(setting, counting())
    assert caught.value.__cause__ is None
    assert key(1) not in str(caught.value)
