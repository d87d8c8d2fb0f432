"""A browser without a screen: it keeps cookies, posts the real forms with the headers that browsers send, and follows redirects."""

from dataclasses import dataclass
from functools import cached_property
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import httpx

from tests.pages.document import Document, Form


@dataclass
class Seen:
    """What a browser shows after a request; `way` are the addresses that it was sent to first."""

    answer: httpx.Response
    way: list[str]

    @cached_property
    def page(self) -> Document:
        return Document(self.answer.text)

    @property
    def status(self) -> int:
        return self.answer.status_code

    @property
    def path(self) -> str:
        """Where it stands, with its query."""
        return self.answer.request.url.raw_path.decode()


class Browser:
    """One browser. `http` answers it; what it is sent to elsewhere it does not fetch."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http
        self.origin = f"{http.base_url.scheme}://{http.base_url.netloc.decode()}"

    async def get(self, path: str) -> Seen:
        return await self._follow(await self.http.get(path, headers={"Sec-Fetch-Site": "none"}))

    async def post(self, path: str, fields: dict[str, str], **headers: str) -> Seen:
        told = {"Origin": self.origin, "Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}
        answer = await self.http.post(path, content=urlencode(fields), headers={**told, **headers})
        return await self._follow(answer)

    async def send(self, form: Form, button: str | None = None, **typed: str | None) -> Seen:
        """Fill a form in and press its button; None clears a box."""
        unknown = typed.keys() - form.fields.keys() - form.boxes
        assert not unknown, f"the form has no {unknown}"
        fields = {name: value for name, value in (form.fields | typed).items() if value is not None}
        pressed = [one for one in form.buttons if button is None or one[0] == button]
        assert len(pressed) == 1, f"which of {form.buttons}?"
        if pressed[0][1]:
            fields[pressed[0][1]] = pressed[0][2]
        if form.method == "get":
            return await self.get(f"{form.action}?{urlencode(fields)}")
        return await self.post(form.action, fields)

    def cookie(self, name: str) -> str | None:
        return next((one.value for one in self.http.cookies.jar if one.name == name), None)

    def slip(self) -> tuple[str, str]:
        """The newest cookie of a request whose code is in the mail: its name and its value."""
        found = [(one.name, one.value or "") for one in self.http.cookies.jar if one.name.removeprefix("__Host-").startswith("code-")]
        return found[-1]

    async def _follow(self, answer: httpx.Response) -> Seen:
        way: list[str] = []
        while answer.is_redirect:
            target = urljoin(str(answer.request.url), answer.headers["location"])
            way.append(target)
            parts = urlsplit(target)
            if f"{parts.scheme}://{parts.netloc}" != self.origin:
                break
            answer = await self.http.get(target, headers={"Sec-Fetch-Site": "same-origin"})
        return Seen(answer, way)


def query_of(address: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(address).query))
