"""No request goes to a subscription's usage endpoint: polling it has blocked accounts.

The CLI requests it at the API's host, whatever `ANTHROPIC_BASE_URL` says. So the test simulates that host: a proxy
ends the encryption with a test certificate, and forwards to the loopback API. No data leaves the machine.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from claude_agent_sdk import ClaudeAgentOptions
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from api_script import steps
from cc_loopback import LoopbackServer
from cc_messages import ClaudeCodeTools, ClaudeCodeTransport, request_context
from cc_session import Session

pytestmark = pytest.mark.slow

_HOST = "api.anthropic.com"
# Seconds. The CLI's requests after an answer follow at once.
_MOMENT = 1.0


def _certificate(folder: Path) -> Path:
    """Write a key and a self-signed certificate for the API's host."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _HOST)])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(hours=1))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(_HOST)]), critical=False)
    signed = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / "api.pem"
    file.write_bytes(private + signed.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    return file


@asynccontextmanager
async def _played_host(api: LoopbackServer, certificate: Path) -> AsyncGenerator[str]:
    """Yield the address of a proxy that maps every host to the loopback API."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    running: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")  # CONNECT
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await writer.start_tls(context)
            to_api = await asyncio.open_connection("127.0.0.1", int(api.url.rpartition(":")[2]))
            await asyncio.gather(_pass_on(reader, to_api[1]), _pass_on(to_api[0], writer))

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(serve(reader, writer))
        running.add(task)
        task.add_done_callback(running.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            for task in [*running]:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()


@asynccontextmanager
async def _subscription(loopback: LoopbackServer, folder: Path) -> AsyncGenerator[dict[str, str]]:
    """Yield a CLI's environment with an artificial subscription, and the simulated host as the API."""
    certificate = _certificate(folder)
    async with _played_host(loopback, certificate) as proxy:
        env = {**loopback.env("oauth"), "ANTHROPIC_BASE_URL": "", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": ""}
        yield {**env, "HTTPS_PROXY": proxy, "HTTP_PROXY": proxy, "NODE_EXTRA_CA_CERTS": str(certificate)}


def _check(loopback: LoopbackServer, messages: int) -> None:
    """Check that the simulated host answered the requests, and that no request asked for the account's usage."""
    paths = [call.path for call in loopback.calls]
    assert paths.count("/v1/messages") == messages, paths
    assert not [path for path in paths if "usage" in path], paths


async def test_starting_running_and_resuming_a_session_asks_for_no_usage(
    loopback: LoopbackServer, tmp_path: Path
) -> None:
    """SEC-11"""
    async with _subscription(loopback, tmp_path) as env:
        options = ClaudeAgentOptions(env=env, tools=[])
        async with await Session.open(options) as session:
            turn = await session.run("Hello.")
            await asyncio.sleep(_MOMENT)
        options.resume = turn.session_id
        async with await Session.open(options) as session:
            await session.run("And you?")
            await asyncio.sleep(_MOMENT)
        _check(loopback, messages=2)
        # Proof that the CLI used the simulated host as its API.
        assert any(path.startswith("/api/") for path in {call.path for call in loopback.calls})


async def test_answering_requests_asks_for_no_usage(loopback: LoopbackServer, tmp_path: Path) -> None:
    """SEC-11: in the caller's loop and in the CLI's, also when the plan is used up."""
    loopback.respond = steps("Fine.")
    body = {"model": "claude-sonnet-5", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello."}]}
    used_up = {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": str(int(datetime.now(UTC).timestamp()) + 7200),
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
    }
    async with _subscription(loopback, tmp_path) as env:
        transport = ClaudeCodeTransport(env=env, pool=2)
        async with httpx2.AsyncClient(transport=transport, base_url="http://claude", timeout=40) as http:
            for own in (None, ClaudeCodeTools(tools=("Read",))):
                with request_context(claude_code_tools=own):
                    assert (await http.post("/v1/messages", json=body)).status_code == 200
                    loopback.fail_next(429, headers=used_up)
                    assert (await http.post("/v1/messages", json=body)).status_code == 429
            await asyncio.sleep(_MOMENT)
        _check(loopback, messages=4)
        assert transport.limits is not None
