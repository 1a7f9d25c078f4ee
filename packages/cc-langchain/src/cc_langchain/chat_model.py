"""`ChatClaudeCode`: langchain-anthropic's chat model, with Claude Code processes in the place of the network."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self

import httpx2
from anthropic import Anthropic, AsyncAnthropic
from langchain_anthropic import ChatAnthropic
from pydantic import Field, PrivateAttr, model_validator

from cc_messages import ClaudeCodeTransport

_API = "https://api.anthropic.com"
# What belongs to this process, and to its threads.
_BOUND = frozenset({"transport", "_client", "_async_client"})


class ChatClaudeCode(ChatAnthropic):
    """LangChain chat model whose requests are answered by Claude Code processes on this machine.

    It takes all arguments of `ChatAnthropic`. Without `transport` the model starts processes for itself: `api_key`,
    `base_url` and `anthropic_proxy`, or the environment variables for them, are then the processes' login and
    way to the API; without a key, the login is that of the `claude` command. These processes start with the first
    request, and end with `close()` or `aclose()`, with the last `with` or `async with` block, with the model's garbage
    collection, and with the interpreter.

    Models that LangChain derives from this one (`bind_tools()`, `with_structured_output()`, configurable fields) use
    the same processes, and so do copies. A serialized or pickled model has no transport, so a loaded model starts
    processes for itself.

    Args:
        transport: Transport for all requests, which several models may share; its owner ends the processes.
        arguments: `ChatAnthropic`'s arguments: `model`, `max_tokens`, `timeout`, and others.

    Raises:
        pydantic.ValidationError: An argument is invalid, or `transport` comes with an `api_key` or a `base_url`.
    """

    transport: ClaudeCodeTransport = Field(default=None, exclude=True, repr=False)  # type: ignore[assignment]
    """Transport for all requests; `transport.stats()` has figures about the processes."""

    _owns_transport: bool = PrivateAttr(default=False)
    _users: int = PrivateAttr(default=0)

    def __init__(self, *, transport: ClaudeCodeTransport | None = None, **arguments: Any) -> None:
        if transport is not None:
            arguments["transport"] = transport
        super().__init__(**arguments)

    @model_validator(mode="before")
    @classmethod
    def _check_login(cls, values: dict[str, Any]) -> dict[str, Any]:
        # Field names instead of these aliases come from LangChain, when it copies a model.
        login = [name for name in ("api_key", "base_url") if values.get(name)]
        if values.get("transport") is not None and login:
            raise ValueError(
                f"{' and '.join(login)} cannot be set together with a transport, which has the login: use "
                'ClaudeCodeTransport(env={"ANTHROPIC_API_KEY": …, "ANTHROPIC_BASE_URL": …})'
            )
        return values

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.transport is None:  # pyright: ignore[reportUnnecessaryComparison]
            self._make_transport()
        return self

    def _make_transport(self) -> None:
        login = {
            "ANTHROPIC_API_KEY": self.anthropic_api_key.get_secret_value(),
            "ANTHROPIC_BASE_URL": "" if self.anthropic_api_url == _API else self.anthropic_api_url,
            "HTTPS_PROXY": self.anthropic_proxy,
        }
        self.transport = ClaudeCodeTransport(env={name: value for name, value in login.items() if value})
        self._owns_transport = True

    @cached_property
    def _client_params(self) -> dict[str, Any]:
        # The client requires a key, which is sent nowhere: Claude Code has the login.
        return {**super()._client_params, "api_key": "claude-code", "base_url": _API}

    @cached_property
    def _client(self) -> Anthropic:
        return Anthropic(**self._client_params, http_client=httpx2.Client(transport=self.transport))

    @cached_property
    def _async_client(self) -> AsyncAnthropic:
        return AsyncAnthropic(**self._client_params, http_client=httpx2.AsyncClient(transport=self.transport))

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return a copy that uses the same processes."""
        memo = {} if memo is None else memo
        memo |= {id(value): value for name, value in self.__dict__.items() if name in _BOUND}
        return super().__deepcopy__(memo)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy that uses the same processes; `update` has new values by field name, without validation."""
        # In two steps: with both options pydantic copies each field by itself, without `__deepcopy__()`.
        copied = super().model_copy(deep=deep)
        return super(ChatClaudeCode, copied).model_copy(update=update)

    def __getstate__(self) -> dict[Any, Any]:
        """Return the state for pickle, without transport and clients."""
        state = super().__getstate__()
        fields = {name: value for name, value in state["__dict__"].items() if name not in _BOUND}
        return state | {"__dict__": fields | {"transport": None}}

    def __setstate__(self, state: dict[Any, Any]) -> None:
        """Load a pickled model, which starts processes for itself."""
        super().__setstate__(state)
        self._users = 0
        self._make_transport()

    @classmethod
    def get_lc_namespace(cls) -> list[str]:
        """Return the module from which LangChain loads a serialized model."""
        return ["cc_langchain"]

    def close(self) -> None:
        """End the processes that this model started, while this thread waits; a later request starts new ones."""
        if self._owns_transport:
            self.transport.close()

    async def aclose(self) -> None:
        """End the processes that this model started; a later request starts new ones."""
        if self._owns_transport:
            await self.transport.aclose()

    def __enter__(self) -> Self:
        self._users += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._users -= 1
        if not self._users:
            self.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self._users -= 1
        if not self._users:
            await self.aclose()
