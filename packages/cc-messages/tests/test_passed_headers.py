"""A request's headers reach the API unchanged, and bring and replace no others."""

from itertools import product
from string import ascii_letters, digits

import httpx2
import pytest

from cc_loopback import LoopbackServer
from warm_clients.api_data import BODY, MESSAGES
from warm_clients.client import Client
from warm_clients.fixtures import Connect

Header = tuple[bytes, bytes]

TOKEN = ascii_letters + digits + "!#$%&'*+-.^_`|~"
# Line breaks and colons before a name, and all other characters, at the start, inside and at the end.
NOT_IN_A_NAME = [bytes([code]) for code in range(256) if chr(code) not in TOKEN]
NAMES = [b"", b"\xe2\x84\xaa", b"x-a\r\nx-evil", b"x-a: 1\nx-evil", b"x-evil: 1\nx-b", b"x-evil: 1\r\n\r\nx-b"] + [
    b"%b%b%b" % (begin, character, end)
    for character, (begin, end) in product(
        NOT_IN_A_NAME, [(b"", b"x-api-key"), (b"x-api-", b"key"), (b"x-api-key", b"")]
    )
]
CONTROL = [bytes([code]) for code in (*range(9), *range(10, 32), 127)]
VALUES = ["€".encode(), "\u2028x-evil: 1".encode(), b"1\nx-api-key: stolen", b"1\r\nx-api-key: stolen"] + [
    b"%b%b%b" % (begin, character, end)
    for character, (begin, end) in product(CONTROL, [(b"", b"x-evil: 1"), (b"1", b"x-evil: 1"), (b"1", b"")])
]
REFUSED = [(name, b"1") for name in NAMES] + [(b"x-mine", value) for value in VALUES]


async def send(client: Client, *headers: Header) -> httpx2.Response:
    request = httpx2.Request("POST", f"http://claude{MESSAGES}", json=BODY, headers=[*headers])
    response = await client.transport.handle_async_request(request)
    await response.aread()
    return response


async def arrived(client: Client, *headers: Header) -> dict[str, str]:
    """Send a request that must be answered, and return the headers that the API gets."""
    client.api.calls.clear()
    assert (await send(client, *headers)).status_code == 200
    [call] = client.api.calls
    return {name: value for name, value in call.headers.items() if name != "x-claude-code-session-id"}


async def test_no_name_and_no_value_brings_another_header_or_replaces_the_login(client: Client) -> None:
    """MSG-115: each is refused before anything is sent, and the next request has only the login's header."""
    assert len(REFUSED) > 500
    before = await arrived(client)
    client.api.calls.clear()
    for name, value in REFUSED:
        response = await send(client, (name, value))
        error = response.json()["error"]
        assert (response.status_code, error["type"]) == (400, "invalid_request_error"), (name, value)
        assert "header name" in error["message"] or "value of the header x-mine" in error["message"]
        assert "stolen" not in error["message"]
    assert not client.api.calls
    assert await arrived(client) == before


async def test_every_other_name_and_value_arrives_as_it_is(client: Client) -> None:
    """MSG-67, MSG-115"""
    before = await arrived(client)
    names = {f"x-{character}-y".lower(): str(index) for index, character in enumerate(TOKEN)}
    ascii_codes, others = (*range(32, 127), 9), range(128, 256)
    values = [{f"x-value-{code}": f"a{chr(code)}b" for code in codes} for codes in (ascii_codes, others)]
    for wanted in (names, *values):
        raw = [(name.encode(), value.encode()) for name, value in wanted.items()]
        assert await arrived(client, *raw) == {**before, **wanted}
    assert await arrived(client) == before


async def test_the_values_of_a_repeated_header_arrive_as_a_list(client: Client) -> None:
    """MSG-182"""
    before = await arrived(client)
    repeated = [(b"x-a", b"1"), (b"anthropic-beta", b"b-1"), (b"X-A", b"2"), (b"anthropic-beta", b"b-2")]
    assert await arrived(client, *repeated) == {**before, "x-a": "1, 2", "anthropic-beta": "b-1,b-2"}
    assert await arrived(client) == before


async def test_no_field_of_the_body_becomes_a_header(client: Client) -> None:
    """MSG-180: not even with a name that the API takes as a header, for example to choose a workspace."""
    before = await arrived(client)
    names = [name.replace("-", "_") for name in before]
    names += [name.removeprefix("anthropic_") for name in names]
    for name in {*names, "betas", "headers", "user_profile_id", "workspace_id", "x_api_key"} - {*BODY}:
        client.api.calls.clear()
        request = httpx2.Request("POST", f"http://claude{MESSAGES}", json={**BODY, name: "mine"})
        response = await client.transport.handle_async_request(request)
        await response.aread()
        if response.status_code == 400:
            assert not client.api.calls
            assert response.json()["error"]["message"] == f"{name}: Extra inputs are not permitted"
            continue
        [call] = client.api.calls
        assert call.body is not None and call.body[name] == "mine"
        assert {key: value for key, value in call.headers.items() if value == "mine"} == {}
    assert await arrived(client) == before


async def test_no_header_of_the_cli_itself_can_be_replaced(client: Client) -> None:
    """MSG-115: the login's header included, for each login."""
    before = await arrived(client)
    assert before["x-api-key"] and len(before) == 19
    logins = [b"authorization", b"proxy-authorization", b"cookie", b"x-amz-security-token", b"x-amz-content-sha256"]
    for name in (*(name.encode() for name in before), *logins):
        if name not in (b"anthropic-beta", b"anthropic-version", b"content-length", b"transfer-encoding"):
            assert await arrived(client, (name, b"stolen"), (name.title(), b"stolen")) == before


@pytest.mark.worlds
async def test_more_headers_than_the_cli_can_send_are_refused(connect: Connect, shared_api: LoopbackServer) -> None:
    """MSG-115: the environment's headers count, too; beyond its own limit the CLI would omit the login."""
    env = {**shared_api.env(), "ANTHROPIC_CUSTOM_HEADERS": "x-always: 1\nx-too: 2"}
    client = connect(size=1, env=env)
    before = await arrived(client)
    # Their names sort before the CLI's own; the CLI sends as many as fit.
    wanted = {f"a-{index}": "1" * 200 for index in range(198)}
    raw = [(name.encode(), value.encode()) for name, value in wanted.items()]
    assert await arrived(client, *raw) == {**before, **wanted}
    refused = await send(client, *raw, (b"a-last", b"1"))
    assert (refused.status_code, refused.json()["error"]["type"]) == (400, "invalid_request_error")
    assert "at most 200 headers, and there are 201" in refused.json()["error"]["message"]
