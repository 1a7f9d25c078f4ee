"""Scripts: each request gets the next step."""

import re
from typing import Any, cast

import httpx2
import pytest

from cc_loopback import JsonObject, LoopbackServer, Reply, ReplyError, ScriptError, Step, call

from .conftest import BODY, Serve

pytest_plugins = ["pytester"]

STOCK: JsonObject = {"name": "stock", "input_schema": {"type": "object"}}


@pytest.fixture
def server(serve: Serve) -> LoopbackServer:
    return serve(None)


def post(server: LoopbackServer, **fields: Any) -> Any:
    return httpx2.post(f"{server.url}/v1/messages", json={**BODY, "tools": [STOCK], **fields}).json()


def only_error(server: LoopbackServer) -> str:
    (error,) = server.errors
    assert isinstance(error, ScriptError)
    return str(error)


def test_each_request_gets_the_next_step(server: LoopbackServer) -> None:
    """LOOP-80: a call, two calls, a text, a message, a function, an async function."""

    async def last(body: JsonObject) -> Reply:
        return f"{body['model']} again"

    def model(body: JsonObject) -> Reply:
        return str(body["model"])

    steps: list[Step] = [
        call("stock", article="kettle"), [call("stock"), call("stock", name="pot")], "3 left",
        {"content": "cut", "stop_reason": "max_tokens"}, model, last,
    ]  # fmt: skip
    server.script(steps)
    answers = [post(server) for _ in steps]
    first, pair, *others = (answer["content"] for answer in answers)
    assert [(block["name"], block["input"]) for block in first] == [("stock", {"article": "kettle"})]
    assert [block["input"] for block in pair] == [{}, {"name": "pot"}]
    assert [content[0]["text"] for content in others] == ["3 left", "cut", "m", "m again"]
    assert answers[3]["stop_reason"] == "max_tokens"
    assert (server.errors, server.unused_steps) == ([], "")


def test_request_after_the_last_step_is_an_error(server: LoopbackServer) -> None:
    """LOOP-80"""
    server.script([call("stock", article="kettle")])
    message = post(server)
    call_id = message["content"][0]["id"]
    result = {"type": "tool_result", "tool_use_id": call_id, "content": "3"}
    messages = [*BODY["messages"], {"role": "assistant", "content": message["content"]}]
    error = post(server, messages=[*messages, {"role": "user", "content": [result]}])["error"]["message"]
    assert re.search(r"request 2 came after the last step of the script at test_script\.py:\d+\n", error)
    assert (
        "\n  step 1: call stock(article='kettle')\n  request 2: message 3 (user): result \"3\"; tools: stock" in error
    )
    assert only_error(server) in error


def test_call_of_a_tool_that_is_not_offered_is_an_error(server: LoopbackServer) -> None:
    """LOOP-80"""
    server.script(["Hello.", [call("stock"), call("price")]])
    post(server)
    post(server)
    assert re.match(r"step 2 of the script at \S+ calls price, which the request does not offer\n", only_error(server))
    assert 'step 1: "Hello."' in only_error(server).replace("'", '"')


def test_invalid_step_is_an_error_where_it_is_written(server: LoopbackServer) -> None:
    """LOOP-80: with its number."""
    with pytest.raises(
        ReplyError, match=r"step 2 of the script at test_script\.py:\d+: content\[0\] \(text\) needs 'text'"
    ):
        server.script(["fine", [{"type": "text"}]])
    with pytest.raises(ReplyError, match="a script is a list of steps"):
        server.script("fine")
    with pytest.raises(ReplyError, match=r"step 1 .*: a responder must return"):
        server.script(cast("Any", [None]))


def test_error_of_a_function_names_its_step(server: LoopbackServer) -> None:
    """LOOP-80: if it raises, or returns an invalid reply."""

    def broken(body: JsonObject) -> str:
        raise ValueError("no such article")

    server.script([broken, lambda body: {"text": "3"}])
    error = post(server)["error"]["message"]
    assert re.search(
        r"ValueError: no such article, step 1 of the script at \S+ for message 1 \(user\): .+; "
        r"tools: .+, raised by the responder \S+broken",
        error,
    )
    error = post(server)["error"]["message"]
    assert re.search(r"^step 2 of the script at \S+: a message needs 'content'", error)


def test_test_that_uses_too_few_steps_fails(pytester: pytest.Pytester) -> None:
    """LOOP-81"""
    pytester.makepyfile(
        test_shop="""
        import httpx2, pytest
        from cc_loopback import call

        BODY = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}

        def test_one_of_two(loopback):
            loopback.script(["Hello.", call("stock", article="kettle")])
            httpx2.post(loopback.url + "/v1/messages", json=BODY)

        def test_own_failure(loopback):
            loopback.script(["Hello.", "Bye."])
            raise LookupError("mine")
    """
    )
    run = pytester.runpytest("-p", "no:cacheprovider", "-p", "no:xdist")
    run.assert_outcomes(failed=2)
    run.stdout.fnmatch_lines(
        [
            "the script at test_shop.py:* has 2 steps, but only 1 requests came; *call stock(article='kettle')",
            '  request 1: message 1 (user): "Hello"; tools: none',
            "*LookupError: mine",
        ]
    )
