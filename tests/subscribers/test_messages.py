"""SMS to a line: one message, no longer than the network takes, from whoever sends it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.ocs.subscribers import escape_sms_text
from operations.subscribers.sms import measure_sms
from registry.caller import Tier
from simulators.network.entities import NetworkRefusal
from simulators.network.methods.radio import require_one_message
from tests.subscribers.staged import LineStage

PLAIN = "@$\n\r !\"#%&'()*+,-./0123456789:;<=>?ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
TWICE = "[\\]^{|}~"
UNITS = "\f`éÉ£¥ñ€ЖΔ李\u00a0\u200d"
PAIRS = "😀𝄞🇳"
PIECES = st.one_of(
    st.sampled_from(PLAIN), st.sampled_from(TWICE), st.sampled_from(UNITS), st.sampled_from(PAIRS), st.just("\\u00e9"), st.just("\\u")
)
TEXTS = st.one_of(
    st.text(st.sampled_from(PLAIN + TWICE), max_size=170),
    st.lists(PIECES, max_size=100).map("".join),
    st.lists(st.sampled_from(PLAIN), min_size=60, max_size=170).map("".join).flatmap(lambda text: PIECES.map(lambda piece: text + piece)),
)


def accepted(text: str) -> bool:
    """Whether the simulated network takes it as one message."""
    try:
        require_one_message(escape_sms_text(text))
    except NetworkRefusal:
        return False
    return True


@pytest.mark.long
@given(TEXTS)
def test_what_fits_is_what_the_network_takes(text: str) -> None:
    found = measure_sms(text)
    assert (found.length <= found.most) == accepted(text)


@given(st.text(st.sampled_from(PLAIN + TWICE), max_size=200).filter(lambda text: "\\u" not in text))
def test_plain_text_is_counted_in_septets(text: str) -> None:
    assert tuple(measure_sms(text)) == (False, sum(2 if character in TWICE else 1 for character in text))
    assert measure_sms(text).most == 160


@pytest.mark.long
@given(
    st.text(st.sampled_from(PLAIN + TWICE), max_size=60),
    st.sampled_from(UNITS + PAIRS),
    st.text(st.sampled_from(UNITS + PAIRS), max_size=60),
)
def test_one_other_character_makes_all_of_it_unicode(before: str, one: str, after: str) -> None:
    text = before + one + after
    assert tuple(measure_sms(text)) == (True, sum(2 if ord(character) > 0xFFFF else 1 for character in text))
    assert measure_sms(text).most == 70


@pytest.mark.long
@given(TEXTS)
def test_the_network_reads_back_what_was_written(text: str) -> None:
    assert decoded(escape_sms_text(text)) == text


def decoded(wire: str) -> str:
    """As the receiver reads it: escapes of UTF-16 units, and everything else as it is."""
    units = bytearray()
    place = 0
    while place < len(wire):
        digits = wire[place + 2 : place + 6]
        if wire.startswith("\\u", place) and len(digits) == 4 and all(digit in "0123456789abcdefABCDEF" for digit in digits):
            units += int(digits, 16).to_bytes(2, "big")
            place += 6
        else:
            units += wire[place].encode("utf-16-be")
            place += 1
    return units.decode("utf-16-be")


@pytest.mark.cases
@pytest.mark.parametrize(
    ("message", "unicode", "length"),
    [
        ("Hello", False, 5),
        ("a" * 160, False, 160),
        ("^" * 80, False, 160),
        ("[" + "a" * 158, False, 160),
        ("two\nlines\r", False, 10),
        ("é" * 70, True, 70),
        ("Grüße", True, 5),
        ("€", True, 1),
        ("`", True, 1),
        ("😀" * 35, True, 70),
        ("C:\\u0041", True, 8),
        ("a" * 69 + "é", True, 70),
    ],
)
@pytest.mark.rule("4.2.43")
async def test_a_message_that_fits_is_sent_once(stage: LineStage, message: str, unicode: bool, length: int) -> None:
    answer = await stage.ask("sms", {"message": message}, method="POST")
    assert (answer.status_code, answer.json()) == (200, {"data": {"sent": True, "unicode": unicode, "length": length}})
    assert stage.writes() == [("sendMtSms", {"imsi": stage.line.imsi, "text": escape_sms_text(message), "senderId": "Reseller"})]


@pytest.mark.cases
@pytest.mark.parametrize(
    ("message", "seen"),
    [
        ("a" * 161, "160"),
        ("^" * 81, "162 of at most 160 GSM"),
        ("a" * 159 + "~", "161 of at most 160 GSM"),
        ("é" * 71, "71 of at most 70 Unicode"),
        ("a" * 70 + "é", "71 of at most 70 Unicode"),
        ("😀" * 36, "72 of at most 70 Unicode"),
        ("a" * 70 + "\\u0041", "76 of at most 70 Unicode"),
        ("", "at least 1"),
        ("\x07", "match"),
        ("tab\t", "match"),
        ("page\f", "match"),
    ],
)
async def test_a_message_that_does_not_fit_is_not_begun(stage: LineStage, message: str, seen: str) -> None:
    answer = await stage.ask("sms", {"message": message}, method="POST")
    assert (answer.status_code, answer.json()["param"], stage.sent()) == (400, "message", [])
    assert seen in answer.json()["error"]


@pytest.mark.cases
@pytest.mark.parametrize(
    ("name", "sender"),
    [("Fjord Mobile AS", "FjordMobile"), ("Ål & Co. 24", "lCo24"), ("李商店", "Info"), ("A very long name indeed", "Averylongna")],
)
async def test_the_sender_is_the_organisation_s_name_unless_one_is_given(stage: LineStage, name: str, sender: str) -> None:
    organisation = await stage.world.organisation(Tier.ENTERPRISE, name=name, mode="managed", account=8101)
    caller = await stage.world.caller(organisation=organisation)
    async with stage.world.client(caller.secret) as http:
        assert (await stage.ask("sms", {"message": "Hi"}, method="POST", http=http)).status_code == 200
        for given_sender in ("Alerts24", "+4790000001", "1234"):
            body = {"message": "Hi", "sender": given_sender}
            assert (await stage.ask("sms", body, method="POST", http=http)).status_code == 200
    senders = [payload["senderId"] for _, payload in stage.writes() if isinstance(payload, dict)]
    assert senders == [sender, "Alerts24", "+4790000001", "1234"]


@pytest.mark.cases
@pytest.mark.parametrize("sender", ["", "twelve chars", "TwelveLetter", "a-b", "Ål", "+12", "1" * 16, "x\n", 4790000001])
async def test_a_sender_that_no_phone_shows_is_refused(stage: LineStage, sender: object) -> None:
    answer = await stage.ask("sms", {"message": "Hi", "sender": sender}, method="POST")
    assert (answer.status_code, answer.json()["param"], stage.sent()) == (400, "sender", [])


async def test_the_line_s_number_may_be_named_as_a_check(stage: LineStage) -> None:
    for number in (stage.line.number, f"+{stage.line.number}"):
        assert (await stage.ask("sms", {"message": "Hi", "msisdn": number}, method="POST")).status_code == 200
    assert [payload["imsi"] for _, payload in stage.writes() if isinstance(payload, dict)] == [stage.line.imsi] * 2


async def test_a_number_of_another_line_is_not_found(stage: LineStage) -> None:
    other, former = stage.in_status()[1].number, stage.line.own_number
    await stage.ask("phone-number", {"phoneType": "real", "phoneNumber": "+4790000001"})
    for number in (other, former, "4712345678"):
        answer = await stage.ask("sms", {"message": "Hi", "msisdn": number}, method="POST")
        assert (answer.status_code, answer.json()["param"]) == (404, "msisdn")
    assert "sendMtSms" not in stage.sent()


async def test_a_line_that_is_not_active_takes_no_message(stage: LineStage) -> None:
    await stage.ask("status", {"status": "SUSPENDED"})
    answer = await stage.ask("sms", {"message": "Hi"}, method="POST")
    assert (answer.status_code, answer.json()["ocs_code"], answer.json()["code"]) == (409, 14, "conflict")


async def test_without_a_key_two_calls_send_two_messages(stage: LineStage) -> None:
    for _ in range(2):
        assert (await stage.ask("sms", {"message": "Hi"}, method="POST")).status_code == 200
    assert [method for method, _ in stage.writes()] == ["sendMtSms"] * 2
