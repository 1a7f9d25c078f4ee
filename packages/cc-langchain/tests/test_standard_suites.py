"""LangChain's standard test suites for chat models, with the real CLI on the loopback API."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from langchain_core.language_models import BaseChatModel
from langchain_tests.integration_tests import ChatModelIntegrationTests
from langchain_tests.unit_tests import ChatModelUnitTests

from cc_langchain import ChatClaudeCode
from cc_loopback import LoopbackServer, default_respond
from cc_messages import ClaudeCodeTransport

MODEL, OTHER_MODEL = "claude-sonnet-5", "claude-opus-5"
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c4944415408d763f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
PDF = b"%PDF-1.4\n1 0 obj <</Type /Catalog>> endobj\ntrailer <</Root 1 0 R>>\n%%EOF\n"
KEY = "sk-ant-test"
SERIALIZED: dict[str, Any] = {
    "lc": 1,
    "type": "constructor",
    "id": ["cc_langchain", "ChatClaudeCode"],
    "name": "ChatClaudeCode",
    "kwargs": {
        "model": MODEL,
        "max_tokens": 100,
        "temperature": 0.0,
        "default_request_timeout": 60.0,
        "max_retries": 2,
        "stop_sequences": [],
        "anthropic_api_url": "https://api.anthropic.com",
        "anthropic_api_key": {"lc": 1, "type": "secret", "id": ["ANTHROPIC_API_KEY"]},
        "stream_usage": True,
    },
}

# The unit suite also asks for a mode that langchain-anthropic replaces, with this warning.
pytestmark = [
    pytest.mark.worlds,
    pytest.mark.filterwarnings("ignore:Unrecognized structured output method 'json_mode':UserWarning"),
]


def respond(body: dict[str, Any]) -> Any:
    """Answer as the loopback API, with the tool arguments that a model would find in the suite's prompts."""
    reply: Any = default_respond(body)
    blocks: list[Any] = [] if isinstance(reply, str) else reply
    for block in blocks:
        if block.get("name") == "magic_function":
            block["input"] = {"input": 3}
        if block.get("name") == "unicode_customer":
            [customer] = re.findall(r"customer named '(.+?)'", str(body["messages"]))
            block["input"] = {"customer_name": customer, "description": "A company."}
    return reply


@pytest.fixture
def benchmark() -> Callable[[Callable[[], object]], None]:
    """Return what pytest-benchmark does where it measures nothing: it calls a function."""
    return lambda function: print(function())


@pytest.fixture
def vcr() -> None:
    """Stand in for recorded HTTP, which a suite with a scripted API does not need."""


@pytest.fixture
def snapshot() -> Callable[..., dict[str, Any]]:
    """Return the serialized form that the suite expects, in the place of a snapshot file."""

    def expected(name: str) -> dict[str, Any]:
        assert name == "serialized"
        return SERIALIZED

    return expected


class TestUnits(ChatModelUnitTests):
    """LANG-02"""

    @property
    def chat_model_class(self) -> type[ChatClaudeCode]:
        return ChatClaudeCode

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": MODEL}

    @property
    def init_from_env_params(self) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
        return {"ANTHROPIC_API_KEY": KEY}, {"model": MODEL}, {"anthropic_api_key": KEY}

    @pytest.mark.xfail(reason="`load()` allows `all` only for LangChain's own packages", raises=ValueError, strict=True)
    def test_serdes(self, model: BaseChatModel, snapshot: Any) -> None:
        super().test_serdes(model, snapshot)


class TestConversations(ChatModelIntegrationTests):
    """LANG-02"""

    @pytest.fixture(autouse=True)
    def scripted(
        self, transport: ClaudeCodeTransport, shared_api: LoopbackServer, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[None]:
        """Script the API, and serve the images and documents that the suite would download."""
        shared_api.respond = respond
        self.transport = transport
        monkeypatch.setattr("langchain_tests.integration_tests.chat_models.httpx.get", download)
        yield
        if requests := shared_api.requests:
            assert {body["model"] for body in requests} <= {MODEL, OTHER_MODEL}

    @property
    def chat_model_class(self) -> type[ChatClaudeCode]:
        return ChatClaudeCode

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": MODEL, "transport": self.transport}

    @property
    def supports_json_mode(self) -> bool:
        return False  # the API has no such mode

    @property
    def supports_image_inputs(self) -> bool:
        return True

    @property
    def supports_image_urls(self) -> bool:
        return True

    @property
    def supports_image_tool_message(self) -> bool:
        return True

    @property
    def supports_pdf_inputs(self) -> bool:
        return True

    @property
    def supports_pdf_tool_message(self) -> bool:
        return True

    @property
    def supports_anthropic_inputs(self) -> bool:
        return True

    @property
    def supports_model_override(self) -> bool:
        return True

    @property
    def model_override_value(self) -> str:
        return OTHER_MODEL


def download(url: str, **_: Any) -> httpx.Response:
    return httpx.Response(200, content=PDF if url.endswith(".pdf") else PNG)
