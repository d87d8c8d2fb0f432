"""What `reseller doctor` says of mail."""

import ssl
from urllib.parse import quote

import anyio
import pytest

from tests.mail.office import PASSWORD, USER, open_server
from transports.cli.outside_checks import CERTIFICATE_FIX, MAIL_FIX, Finding, examine_mail
from transports.settings_files import load_settings

pytestmark = [pytest.mark.filterwarnings("ignore:Session.login_data:DeprecationWarning")]  # of the server's own code
Contexts = tuple[ssl.SSLContext, ssl.SSLContext]
LOGIN = f"{quote(USER, safe='')}:{quote(PASSWORD, safe='')}@"


async def asked(url: str) -> Finding:
    settings = load_settings({"SERVICE_SMTP_URL": url, "SERVICE_MAIL_FROM": "noreply@esim.example" if url else ""})
    found = await anyio.to_thread.run_sync(examine_mail, settings)
    assert PASSWORD not in repr(found) and quote(PASSWORD, safe="") not in repr(found) and USER not in repr(found)
    return found


async def test_without_a_server_it_says_where_mails_are_shown() -> None:
    assert await asked("") == ("mail", "shown by serve in its terminal; SERVICE_SMTP_URL names a mail server", None)


async def test_a_server_that_answers_is_greeted_and_gets_no_mail() -> None:
    async with open_server() as office:
        where = f"127.0.0.1:{office.port}"
        assert await asked(f"smtp://{where}") == ("mail", f"{where} answers, NOT encrypted", None)
    assert (len(office.greeted), office.mails) == (1, [])
    assert await asked(f"smtp://{where}") == ("mail", f"{where}: the mail server could not be reached", MAIL_FIX)


async def test_a_server_s_certificate_and_password_are_tried(
    tls: Contexts, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_server(starttls=tls[0], auth=True) as office:
        where = f"localhost:{office.port}"
        found = await asked(f"smtp://{LOGIN}{where}")
        assert "certificate is not trusted" in found.state and found.fix == CERTIFICATE_FIX
        authority = tmp_path_factory.mktemp("trust") / "ca.pem"
        authority.write_text("".join(ssl.DER_cert_to_PEM_cert(der) for der in tls[1].get_ca_certs(binary_form=True)))
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        found = await asked(f"smtp://{LOGIN}{where}")
        assert found == ("mail", f"{where} answers, encrypted, and takes our user and password", None)
        found = await asked(f"smtp://mailer:wrong@{where}")
        assert found == ("mail", f"{where}: the mail server refused our user and password (535)", MAIL_FIX)
