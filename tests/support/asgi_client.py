"""Requests to an ASGI application without sockets."""

import asyncio
from typing import Any

import httpx
from starlette.types import ASGIApp


class AsgiClient:
    """Client of one application.

    Args:
        app: Application.
        base_url: Address that requests name.
        headers: Headers of every request.
    """

    def __init__(self, app: ASGIApp, base_url: str, headers: dict[str, str]) -> None:
        self._app, self._base_url, self._headers = app, base_url, headers

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.request("GET", path, **more)

    def post(self, path: str, **more: Any) -> httpx.Response:
        return self.request("POST", path, **more)

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url=self._base_url, headers=self._headers) as client:
                return await client.request(method, path, **more)

        return asyncio.run(send())
