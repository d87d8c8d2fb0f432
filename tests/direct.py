"""An HTTP client of an application in this process: what httpx does for networks takes longer than many a call, and is left out."""

from typing import Any

import httpx


class Direct(httpx.AsyncClient):
    """No log line, no timing, and cookies only where there are some; a call that wants more than its answer is made as ever."""

    def build_request(self, method: str, url: httpx.URL | str, **rest: Any) -> httpx.Request:
        """A path is read once: with its host, and not before that by itself."""
        if isinstance(url, str) and url.startswith("/") and not url.startswith("//") and self.base_url.path == "/":
            url = f"{self.base_url.scheme}://{self.base_url.netloc.decode()}{url}"
        return super().build_request(method, url, **rest)

    async def send(self, request: httpx.Request, **rest: Any) -> httpx.Response:
        """The answer, read to its end."""
        if self.auth is not None or self.follow_redirects or rest.get("stream") or rest.get("follow_redirects") is True:
            return await super().send(request, **rest)
        response = await self._transport.handle_async_request(request)
        response.request = request
        await response.aread()
        if "set-cookie" in response.headers:
            self.cookies.extract_cookies(response)
        return response
