"""The end of a login with `/login`, in responses."""

import sys
from pathlib import Path

import anyio
import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelRequest, ModelResponse
from pydantic_ai.models import ModelRequestParameters

from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider
from login_file import login_env, write_login

pytestmark = pytest.mark.worlds


@pytest.mark.skipif(sys.platform != "linux", reason="the login is a file on Linux")
async def test_a_response_has_the_end_of_the_login(loopback: LoopbackServer, tmp_path: Path) -> None:
    """MODEL-171: from the second response on, and in the CLI's result."""
    ends_at = write_login(tmp_path)
    with anyio.fail_after(60):
        async with ClaudeCodeProvider(env=login_env(loopback, tmp_path), pool=1) as provider:
            model = ClaudeCodeModel(provider=provider)
            facts: list[dict[str, object]] = []
            for _ in range(2):
                response = (await Agent(model).run("Hello.")).all_messages()[-1]
                assert isinstance(response, ModelResponse)
                facts.append((response.provider_details or {})["claude_code"])
            request = ModelRequest.user_text_prompt("Hello.")
            _, result = await model.request_with_metadata([request], None, ModelRequestParameters())
    assert [one.get("login_expires_at") for one in facts] == [None, ends_at.isoformat()]
    assert result.credential_expires_at == ends_at
