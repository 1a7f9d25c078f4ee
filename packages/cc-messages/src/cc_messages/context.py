"""Request options outside the body: tools of the CLI loop, and callbacks of the caller.

The Messages API cannot carry a function. So a caller that wants the CLI to run the loop sets it around the request, and
the transport finds it in the request context: `with request_context(tools=…): await client.messages.create(…)`. The
body is unchanged: its `tools` describe the tools to the model, and `CLITools` selects the tools that the CLI calls by
itself. Any other tool call ends the answer, as in any Messages API response.

Knows callers, their event loops and MCP tools; does not know processes, HTTP or the Messages API.
"""

import asyncio
import contextvars
import json
import logging
import re
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeVar, cast

from claude_agent_sdk import AgentDefinition, Message

from cc_ipc import ToolSchema
from cc_session import McpServer, Policy, Questions
from cc_session.internals import TOOL_META, await_on, check_paths, check_server_name, is_known_tool, mcp_name, owned
from cc_types import APIError, JsonValue, RateLimits

logger = logging.getLogger(__name__)

T = TypeVar("T")

CLAUDE_CODE_SERVER = "claude-code"
"""The server name for the CLI tools in answers."""

# `Read`, `Bash(git *)`, `mcp__server__tool`, as in the CLI rules.
_ALLOWED = re.compile(r"(?P<tool>[A-Za-z0-9_*-]+)(?:\(.*\))?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClaudeCodeTools:
    """Claude Code tools that a request may use; by default it has none.

    All tools, folders, servers, sub-agents and skills that are not named are denied without asking, unless a policy
    requires a question. Requests share processes if only the folder (not with a subscription) and the definitions of
    MCP servers differ, and there are no skills. Policies and callbacks are compared by identity.

    Raises:
        ValueError: `tools` has an entry that is not a tool name, or that misspells one.
        CLIConnectionError: `cwd` is not a folder.
    """

    tools: Sequence[str]
    """Allowed tools, written like Claude Code rules: `"Read"`, `"Bash(git *)"`. All others are missing, and other
    calls of these are denied: a policy that allows them opens no more."""
    policy: Policy | None = None
    """Additional policy for every call. Its callbacks run in the request event loop; plain functions block it."""
    defers: bool = False
    """True if a call that the policy asks about ends the answer, like a call to the caller's tools. Its result in a
    later request is then the decision: `cc_messages.APPROVED`, or the reason against it."""
    mcp_servers: Mapping[str, McpServer] = field(default_factory=dict[str, McpServer], repr=False)
    """MCP servers that the CLI connects to, which keep their state from request to request. All their tools are
    allowed, unless the policy denies them."""
    agents: Mapping[str, AgentDefinition] = field(default_factory=dict[str, AgentDefinition])
    """Sub-agents by name. They add the tool `Agent`."""
    skills: Sequence[str] = ()
    """Skills by name, from `.claude/skills` in the folder or the user's configuration; no other file there is read.
    They add the tool `Skill`."""
    questions: Questions | None = None
    """The answers to questions to the user, likewise in the request event loop. Without it they are refused."""
    cwd: str | Path | None = None
    """The tools' working folder; the transport's if None."""
    max_turns: int | None = None
    """The most API calls in a request; no limit if None."""

    def __post_init__(self) -> None:
        for option in ("tools", "skills"):
            if isinstance(text := getattr(self, option), str):
                raise ValueError(f"{option} is a sequence of names, not a text: write {option}=[{text!r}]")
        check_paths(self.cwd, None)
        for option in ("mcp_servers", "agents", "skills"):  # copies, which the caller cannot change
            object.__setattr__(self, option, owned(getattr(self, option)))
        if efforts := [name for name, agent in self.agents.items() if agent.effort is not None]:
            raise ValueError(f"agents[{efforts[0]!r}]: an effort would have no effect, since Claude Code's own is off")
        if self.defers and self.policy is None:
            raise ValueError("approvals need a policy that says which calls to ask about")
        policy = self.policy or Policy()
        if "AskUserQuestion" in self.names and not (self.questions or self.defers or policy.ask):
            raise ValueError("nobody could answer the tool 'AskUserQuestion': set questions=Questions(answer)")
        if self.questions and self.defers and policy.verdict("AskUserQuestion", {}).behavior == "ask":
            raise ValueError("a question would wait for an approval, too: allow 'AskUserQuestion' in the policy")
        for tool in self.tools:
            if _ALLOWED.fullmatch(tool) is None:
                raise ValueError(f"{tool!r} is not a tool: write a name like 'Read', or a rule like 'Bash(git *)'")
            is_known_tool(tool.partition("(")[0])  # raises if a tool name is misspelled
        implied = [name for name, users in (("Agent", self.agents), ("Skill", self.skills)) if users]
        object.__setattr__(self, "tools", (*self.tools, *(name for name in implied if name not in self.names)))

    @property
    def names(self) -> list[str]:
        """Tool names without argument rules."""
        return list(dict.fromkeys(tool.partition("(")[0] for tool in self.tools))

    @property
    def key(self) -> object:
        """Values that a process fixes at its start; the folder belongs to them if there are skills."""
        fixed = (self.tools, self.policy, self.defers, {*self.mcp_servers}, self.agents, self.skills, self.max_turns)
        return (*fixed, self.questions, str(self.cwd) if self.skills else None)


class LoopEndedError(APIError):
    """A limit or a tool of the caller has ended a request in the CLI loop."""

    reason: BaseException | None
    """The exception that a tool or `on_step` raised; None if `max_turns` was reached."""
    after_calls: bool
    """True if `on_step` lets the calls of its API call run before the request ends."""

    def __init__(self, *, message: str, reason: BaseException | None = None, after_calls: bool = False) -> None:
        self.reason, self.after_calls = reason, after_calls
        super().__init__(status=400, error_type="invalid_request_error", message=message)


@dataclass(frozen=True, slots=True)
class CLICall:
    """A tool call that the CLI makes by itself."""

    id: str | None
    """The call id from the model; None if the CLI did not send it."""
    name: str
    """The tool name, as in the request body."""
    arguments: dict[str, JsonValue]
    """The arguments from the model, unchecked."""
    is_of_subagent: bool = False
    """True for a sub-agent's call."""
    step: int = 1
    """Number of the agent's API call in the request that has made it, or during which it was made, from 1."""


@dataclass(frozen=True, slots=True)
class LoopStep:
    """An API call in the CLI loop whose tool calls the CLI makes."""

    message: Mapping[str, JsonValue]
    """The API message without content."""
    calls: int
    """Number of its calls to `CLITools`."""
    is_last: bool
    """True if no API call follows, since other calls in it end the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CLITools:
    """Tools that the CLI calls in its own loop, without asking the caller.

    A call of another tool in the request body ends the answer. Then the caller gets all calls to the body's tools in
    this API message, and answers them.

    Raises:
        ValueError: `server_name` is invalid.
    """

    names: frozenset[str]
    """Their names in the request body."""
    call: Callable[[CLICall], Awaitable[Mapping[str, object]]]
    """Runs a call, in the event loop and the context of `request_context()`, and returns a tool result in the MCP form:
    `{"content": [{"type": "text", "text": …}], "isError": …}`. Its exception becomes the tool error for the model;
    a `LoopEndedError` ends the request."""
    server_name: str = "tools"
    """The MCP server that has them in the CLI."""
    transport: Literal["stdio", "sdk"] = "sdk"
    """The route from the CLI to the tools: a bridge process, or its connection to this process."""
    sequential: frozenset[str] = frozenset()
    """Tools that must not run twice at the same time."""
    max_turns: int | None = None
    """The most API calls in a request; no limit if None."""

    def __post_init__(self) -> None:
        check_server_name(self.server_name)
        if self.server_name == CLAUDE_CODE_SERVER:
            raise ValueError(
                f"{CLAUDE_CODE_SERVER!r} cannot be the name of an MCP server: answers name Claude Code's own tools so"
            )


@dataclass(frozen=True, slots=True)
class ToolServerKey:
    """Name, transport and tools of an MCP server; two requests with equal keys can use one server."""

    name: str
    transport: Literal["stdio", "sdk"]
    tools: str
    """JSON text: a list of objects with `name`, `description`, `input_schema` and `sequential`."""
    is_plain: bool = False
    """True if the model gets the tools under their own names, not as `mcp__SERVER__TOOL`."""

    def cli_name(self, tool: str) -> str:
        """Return the tool name for the model."""
        return tool if self.is_plain else mcp_name(self.name, tool)

    def schemas(self) -> tuple[ToolSchema, ...]:
        """Return the tools as an MCP server lists them."""
        return _schemas(self.tools)

    def names(self) -> frozenset[str]:
        """Return the tool names."""
        return frozenset(schema["name"] for schema in self.schemas())


# Every request of an agent has the same tools, and needs them several times.
@lru_cache(maxsize=64)
def _schemas(tools: str) -> tuple[ToolSchema, ...]:
    schemas = cast("list[dict[str, JsonValue]]", json.loads(tools))
    for schema in schemas:
        # The CLI runs calls to read-only tools in parallel, and others one after another.
        schema.update(annotations={"readOnlyHint": not schema.pop("sequential")}, _meta=dict(TOOL_META))
    return cast("tuple[ToolSchema, ...]", tuple(schemas))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestReport:
    """How a request was handled; after retries by the client, the last attempt."""

    process_started: bool
    """True if it waited for a process to start and got it; otherwise the process was warm, or had served others."""
    wait_seconds: float
    """The wait for a process, in seconds, a start included."""
    queue_length: int
    """Requests that waited for a process before it."""
    rate_limits: RateLimits | None = None
    """Limits in the API response, if any. In the CLI loop they can come after the answer."""
    login_expires_at: datetime | None = None
    """Time when a login with `/login` ends, from an earlier request: Claude Code reports it after each answer."""


@dataclass(eq=False, repr=False)
class RequestContext:
    """Request options, and the event loop and context in which the caller's code runs."""

    tools: CLITools | None
    claude_code_tools: ClaudeCodeTools | None
    on_message: Callable[[Message], object] | None
    on_usage: Callable[[Mapping[str, JsonValue]], object] | None = None
    on_step: Callable[[LoopStep], object] | None = None
    ended_by: LoopEndedError | None = field(default=None, init=False)
    """The limit, or the tool error, that has ended the last request."""
    on_end: Callable[[LoopEndedError], object] | None = field(default=None, init=False)
    """Ends the current request; set on the background loop while there is one."""
    report: RequestReport | None = field(default=None, init=False)
    """The report on the last request; None before its process was ready."""
    model: str = field(default="", init=False)
    """The model that the last request names; empty before its body was parsed."""
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop, init=False)
    _context: contextvars.Context = field(default_factory=contextvars.copy_context, init=False)

    @property
    def max_turns(self) -> int | None:
        """The most API calls in the CLI loop: the lower limit of both kinds of tools; None if there is none."""
        limits = [tools.max_turns for tools in (self.tools, self.claude_code_tools) if tools is not None]
        return min((limit for limit in limits if limit is not None), default=None)

    def deliver(self, message: Message) -> None:
        """Pass a message to the caller, without waiting."""
        if self.on_message is None:
            return
        try:
            self._loop.call_soon_threadsafe(self.on_message, message, context=self._context.copy())
        except RuntimeError:
            logger.debug("A CLI message came after its listener's event loop had ended")

    def tell_usage(self, message: Mapping[str, JsonValue]) -> None:
        """Pass the API counts to the caller, in this thread, so that they precede the event that has them."""
        if self.on_usage is not None and message:
            try:
                self.on_usage(message)
            except BaseException:  # it must not end the loop of all processes
                logger.exception("The callback for usage failed")

    async def call(self, tools: CLITools, call: CLICall) -> Mapping[str, object]:
        """Run one of the tools in the caller's loop and context. Cancelling this cancels the tool."""

        async def result() -> Mapping[str, object]:
            try:
                return await tools.call(call)
            except SystemExit as error:
                # A task that raises it ends its event loop, which a tool with a command line parser does not intend.
                raise RuntimeError(f"SystemExit: {error}") from error

        try:
            return await self.there(result())
        except LoopEndedError as error:
            self.ended_by = error
            if self.on_end is not None:
                self.on_end(error)
            return await asyncio.get_running_loop().create_future()

    async def tell_step(self, step: LoopStep) -> None:
        """Pass an API call to the caller.

        Raises:
            LoopEndedError: The caller wants no further API call.
        """
        if (on_step := self.on_step) is None:
            return

        async def tell() -> None:
            try:
                on_step(step)
            except LoopEndedError:
                raise
            except BaseException as error:
                raise LoopEndedError(message=str(error), reason=error) from error

        try:
            await self.there(tell())
        except LoopEndedError as error:
            self.ended_by = error
            raise

    async def there(self, work: Coroutine[object, object, T]) -> T:
        """Await something in the caller's event loop and context; raise `RuntimeError` if that loop has ended."""
        if self._loop.is_closed():
            work.close()
            raise RuntimeError("the event loop in which the request was made has ended")
        return await await_on(self._loop, work, self._context)


current_context: ContextVar[RequestContext | None] = ContextVar("cc_messages_request_context", default=None)


@contextmanager
def request_context(
    *,
    tools: CLITools | None = None,
    claude_code_tools: ClaudeCodeTools | None = None,
    on_message: Callable[[Message], object] | None = None,
    on_usage: Callable[[Mapping[str, JsonValue]], object] | None = None,
    on_step: Callable[[LoopStep], object] | None = None,
) -> Generator[RequestContext]:
    """Set the options for all requests made within, in this task and its subtasks.

    Yields the `RequestContext`, whose `report` is set as soon as the response has begun.

    Args:
        tools: The caller's tools for the CLI loop.
        claude_code_tools: Claude Code tools, allowed for these requests.
        on_message: Called in the current event loop with every CLI message for such a request, in order, up to and
            including the turn's `ResultMessage`. The last ones may come after the response.
        on_usage: Called with the API message without content, whenever the API has counted more: before the caller
            gets the event that says so, and after an answer that broke off, whose `output_tokens` are estimated from
            its length. It is called in another thread, so it must return at once.
        on_step: Called in the current event loop when an API message with calls for the CLI has ended, before those to
            `tools` run. An exception ends the request, a `LoopEndedError` with `after_calls` after the calls. With
            Claude Code's own tools, which may run earlier, there can be one more API call.
    """
    context = RequestContext(tools, claude_code_tools, on_message, on_usage, on_step)
    token = current_context.set(context)
    try:
        yield context
    finally:
        current_context.reset(token)
