"""A scripted token endpoint for a made-up claude.ai login: each refresh token can be used once.

The CLI renews a login only at Anthropic's hosts. So the server is an HTTPS proxy with a certificate for these hosts,
and passes requests for messages on to the loopback API.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from cryptography.x509 import DNSName

from cc_loopback import JsonObject, LoopbackServer
from login_file import login_env, write_login
from server_certificate import server_certificate

_REFUSED = {"type": "error", "error": {"type": "authentication_error", "message": "OAuth token has expired."}}


class TokenAPI:
    """The endpoint, and the folder with the login."""

    def __init__(self, folder: Path, api: LoopbackServer) -> None:
        self.config = folder / "config"
        self.renewals: list[bool] = []
        """True for each request with an unused refresh token, false for each with another."""
        self.delay = 0.0
        """Seconds until the endpoint answers. The refresh token is used up at once."""
        self._tokens = 0
        self._api = api
        hosts = [DNSName("*.anthropic.com"), DNSName("*.claude.com")]
        self._tls, self._certificate = server_certificate(folder, *hosts)
        self.write_login()

    def write_login(self, refresh_token: str = "refresh-0") -> None:
        """Write a login with an access token that has expired."""
        write_login(self.config, refresh_token=refresh_token, expires_in=-60)
        (self.config / ".claude.json").write_text(json.dumps({"oauthAccount": {"accountUuid": "someone"}}))

    @asynccontextmanager
    async def served(self) -> AsyncGenerator[dict[str, str]]:
        """Serve, and yield the CLI's environment."""
        async with await asyncio.start_server(self._serve, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            yield {
                **login_env(self._api, self.config), "ANTHROPIC_BASE_URL": "", "HTTPS_PROXY": url, "https_proxy": url,
                "NODE_EXTRA_CA_CERTS": str(self._certificate),
            }  # fmt: skip

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await writer.start_tls(self._tls)
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lines = [line.partition(": ") for line in head.decode().lower().split("\r\n")]
                headers = {name: value for name, _, value in lines}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                path = head.split()[1]
                if path.startswith(b"/v1/messages") and headers.get("authorization") == self._bearer:
                    await self._pass_on(head + body, writer)
                    return
                await self._answer(path, body, writer)
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            pass
        finally:
            writer.close()

    @property
    def _bearer(self) -> str:
        return f"bearer sk-ant-oat01-{self._tokens}" if self._tokens else ""

    async def _answer(self, path: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        status, answer = 404, JsonObject()
        if path.startswith(b"/v1/messages"):
            status, answer = 401, _REFUSED
        elif path.startswith(b"/v1/oauth/token"):
            status, answer = await self._renew(json.loads(body)["refresh_token"])
        text = json.dumps(answer)
        writer.write(f"HTTP/1.1 {status} -\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
        await writer.drain()

    async def _renew(self, refresh_token: str) -> tuple[int, JsonObject]:
        self.renewals.append(refresh_token == f"refresh-{self._tokens}")
        if not self.renewals[-1]:
            return 400, {"error": "invalid_grant", "error_description": "Refresh token not found or invalid"}
        self._tokens += 1
        number = self._tokens
        await asyncio.sleep(self.delay)
        return 200, {
            "token_type": "Bearer", "access_token": f"sk-ant-oat01-{number}", "refresh_token": f"refresh-{number}",
            "expires_in": 28_800, "scope": "user:inference user:profile",
        }  # fmt: skip

    async def _pass_on(self, request: bytes, writer: asyncio.StreamWriter) -> None:
        reader, api = await asyncio.open_connection("127.0.0.1", urlsplit(self._api.url).port)
        api.write(request.replace(b"onnection: keep-alive", b"onnection: close"))
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        api.close()
