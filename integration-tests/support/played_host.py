"""The API's own host, played by the loopback API: Claude Code behaves otherwise there than at other addresses.

A proxy ends the encryption with a test certificate, and forwards to the loopback API. No data leaves the machine.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from cc_loopback import LoopbackServer

_HOST = "api.anthropic.com"


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
async def played_host(api: LoopbackServer, folder: Path) -> AsyncGenerator[dict[str, str]]:
    """Yield a CLI's variables with which the loopback API is Anthropic's; the certificate is written into `folder`."""
    certificate = _certificate(folder)
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
            proxy = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            proxies = {"HTTPS_PROXY": proxy, "HTTP_PROXY": proxy}
            yield {"ANTHROPIC_BASE_URL": "", "NODE_EXTRA_CA_CERTS": str(certificate), **proxies}
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
