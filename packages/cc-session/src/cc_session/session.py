"""A session: one Claude Code process, one conversation, one turn at a time.

It works on frames and events and does not know what they mean: which messages make up the conversation, and what to
do about a tool call, is its caller's business. Every coroutine may be awaited from any thread's asyncio loop.
"""

import asyncio
import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal, Self, cast

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, Message, ResultMessage, Transport

from cc_types import ClaudeCodeError, CLIConnectionError, ControlTimeoutError, JsonValue

from ._errors import translated
from ._process import CLIProcess
from .background import at_exit, on_background
from .control import ControlTransport
from .frames import Content, Frame, assistant_frame, user_frame
from .options import sealed_options
from .timeouts import Timeouts

__all__ = ["Session", "SessionState"]

SessionState = Literal["idle", "busy", "dead"]

# The CLI sends a whole message as one line: a request with a few images has tens of megabytes.
_MAX_LINE_BYTES = 256 * 1024 * 1024


class Session:
    """One CLI process and the conversation in it. Made by `Session.open()`, ended by `close()` or `async with`.

    `state` is `"idle"`; or `"busy"` from a message that asks until its result was read; or `"dead"` when the process
    has ended or is being closed. Not more than one coroutine may use a session at a time, but for `interrupt()`,
    `rewind()` and `close()`, which may come in between.
    """

    def __init__(self, client: ClaudeSDKClient, transport: ControlTransport, folder: Path, timeouts: Timeouts) -> None:
        """Use `Session.open()`."""
        self._client = client
        self._transport = transport
        self._folder = folder
        self._timeouts = timeouts
        self._inbox: asyncio.Queue[Message | Exception] = asyncio.Queue()
        self._reader: asyncio.Task[None] | None = None
        self._state: SessionState = "idle"
        self._last_user_uuid: str | None = None
        self.death: Exception | None = None
        """Why the process is gone, if it went by itself."""

    @classmethod
    async def open(
        cls,
        options: ClaudeAgentOptions | None = None,
        *,
        timeouts: Timeouts | None = None,
        transport: Transport | None = None,
    ) -> Self:
        """Start a process and wait until it is ready.

        Args:
            options: The SDK's options; `sealed_options()` if None. A system prompt given as text goes to the process
                in a private file, because a command line can be read by every user of the machine.
            timeouts: How long to wait for what.
            transport: Where the CLI is, if not in a process of this machine.

        Raises:
            CLINotFoundError: There is no CLI at the path, or none was found.
            CLIConnectionError: It could not be started.
            ProcessExitedError: It ended before it was ready; the error has the end of its stderr.
            ControlTimeoutError: It was not ready within `timeouts.connect` seconds.
        """
        return await on_background(cls._open, options or sealed_options(), timeouts or Timeouts(), transport)

    @property
    def state(self) -> SessionState:
        """What the session is doing."""
        return self._state

    @property
    def pid(self) -> int | None:
        """The id of the process, or None if it is not one of ours or was closed."""
        inner = self._transport.inner
        return inner.pid if isinstance(inner, CLIProcess) else None

    async def add_user(self, content: Content) -> str:
        """Append a user message without asking for an answer; returns its uuid."""
        return await on_background(self._add_user, content)

    async def add_assistant(self, content: Content, *, model: str) -> str:
        """Append an assistant message of the past; returns its uuid."""
        return await on_background(self._add_assistant, content, model)

    async def ask(self, content: Content) -> AsyncIterator[Message]:
        """Append a user message and yield what the CLI sends, up to and with the `ResultMessage`.

        The session stays busy until the result was yielded: who leaves early must `rewind()` or `close()`.

        Raises:
            ClaudeCodeError: The process ended or sent what cannot be read; the session is dead.
        """
        await on_background(self._ask, content)
        while self._state == "busy":
            yield await on_background(self._next)

    @property
    def last_user_uuid(self) -> str | None:
        """The uuid of the last user message that was sent."""
        return self._last_user_uuid

    async def set_env(self, env: Mapping[str, str]) -> None:
        """Change environment variables that the CLI reads for each request, such as `CLAUDE_CODE_EXTRA_BODY`."""
        await self.control("apply_flag_settings", settings={"env": dict(env)})

    async def rewind(self, target_uuid: str) -> bool:
        """Drop the message `target_uuid` and all after it, ending a turn that runs.

        The target is a user message without tool results, or the first part of an assistant message that follows
        tool results. Returns whether the CLI did it; if not, nothing changed but that the turn may have ended.
        """
        return await on_background(self._rewind, target_uuid)

    async def interrupt(self) -> None:
        """End the turn that runs, if any. Its result still has to be read."""
        await self.control("interrupt")

    async def control(self, subtype: str, **fields: JsonValue) -> dict[str, JsonValue]:
        """Send a control request and return the CLI's answer.

        Raises:
            ControlTimeoutError: No answer within `timeouts.control` seconds.
            ControlRequestError: The CLI refused.
            ProcessExitedError: The process has ended.
        """
        return await on_background(self._control, subtype, fields)

    async def close(self) -> None:
        """End the process and delete its private folder. Bounded by a few times `timeouts.close`; idempotent."""
        await on_background(self._close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<Session pid={self.pid} {self._state}>"

    # What follows runs on the background loop.

    @classmethod
    async def _open(cls, options: ClaudeAgentOptions, timeouts: Timeouts, transport: Transport | None) -> Self:
        folder = Path(tempfile.mkdtemp(prefix="cc-session-"))
        process = transport or CLIProcess(_private(options, folder), grace=timeouts.close)
        control = ControlTransport(process)
        session = cls(ClaudeSDKClient(options, transport=control), control, folder, timeouts)
        _open_sessions.add(session)
        # In a task of its own: a cancelled `connect()` can leave the process running.
        connecting = asyncio.ensure_future(session._client.connect())
        try:
            with translated():
                async with asyncio.timeout(timeouts.connect):
                    await asyncio.shield(connecting)
        except BaseException as error:
            await session._abandon(connecting)
            if isinstance(error, TimeoutError):
                raise ControlTimeoutError(subtype="initialize", seconds=timeouts.connect) from error
            raise
        session._reader = asyncio.ensure_future(session._read())
        return session

    async def _abandon(self, connecting: "asyncio.Future[None]") -> None:
        self._set_hurry(True)
        await asyncio.shield(self._close())
        connecting.cancel()
        with suppress(Exception, asyncio.CancelledError):
            await connecting

    async def _read(self) -> None:
        try:
            with translated():
                async for message in self._client.receive_messages():
                    self._inbox.put_nowait(message)
            error: Exception = CLIConnectionError(reason="Claude Code's output has ended")
        except Exception as caught:
            error = caught
        if self._state != "dead":
            self.death, self._state = error, "dead"
        self._inbox.put_nowait(error)

    async def _next(self) -> Message:
        item = await self._inbox.get()
        if isinstance(item, Exception):
            self._inbox.put_nowait(item)  # for whoever asks next
            raise item
        if isinstance(item, ResultMessage) and self._state == "busy":
            self._state = "idle"
            self._set_hurry(False)
        return item

    async def _result(self) -> None:
        while not isinstance(await self._next(), ResultMessage):
            pass

    async def _send(self, frame: Frame) -> str:
        if self._state == "dead":
            raise self.death or CLIConnectionError(reason="The session is closed")
        with translated():
            await self._transport.write(json.dumps(frame) + "\n")
        return cast(str, frame["uuid"])

    async def _add_user(self, content: Content) -> str:
        uuid = self._last_user_uuid = await self._send(user_frame(content, ask=False))
        # The CLI answers with a result of no turns. A frame that is written before it may overtake this one.
        try:
            async with asyncio.timeout(self._timeouts.control):
                await self._result()
        except TimeoutError as error:
            raise ControlTimeoutError(subtype="user message", seconds=self._timeouts.control) from error
        return uuid

    async def _add_assistant(self, content: Content, model: str) -> str:
        return await self._send(assistant_frame(content, model=model))

    async def _ask(self, content: Content) -> None:
        frame = user_frame(content, ask=True)
        self._last_user_uuid = cast(str, frame["uuid"])
        await self._send(frame)
        self._state = "busy"
        self._set_hurry(True)

    async def _rewind(self, target_uuid: str) -> bool:
        answer = await self._control(
            "rewind_conversation",
            {
                "target_message_uuid": target_uuid,
                "last_seen_user_message_uuid": self._last_user_uuid,
                "interrupt_if_running": True,
                "allow_assistant_target": True,
            },
        )
        return answer.get("rewound") is True

    async def _control(self, subtype: str, fields: dict[str, JsonValue]) -> dict[str, JsonValue]:
        if self._state == "dead":
            raise self.death or CLIConnectionError(reason="The session is closed")
        with translated():
            return await self._transport.request(subtype, seconds=self._timeouts.control, **fields)

    def _set_hurry(self, hurry: bool) -> None:
        if isinstance(self._transport.inner, CLIProcess):
            self._transport.inner.hurry = hurry

    async def _close(self) -> None:
        if self not in _open_sessions:
            return
        _open_sessions.discard(self)
        self._state = "dead"
        try:
            with suppress(ClaudeCodeError), translated():
                await self._client.disconnect()
        finally:
            await self._transport.close()
            if self._reader is not None:
                self._reader.cancel()
            shutil.rmtree(self._folder, ignore_errors=True)


def _private(options: ClaudeAgentOptions, folder: Path) -> ClaudeAgentOptions:
    """Give the process a folder of its own to write to, and its system prompt in a file that only we can read."""
    own = {"CLAUDE_CODE_TMPDIR": str(_made(folder / "tmp"))}
    if "bare" in options.extra_args:
        # Without a login to find there, the process needs nothing of the user's configuration and writes nothing to it.
        own["CLAUDE_CONFIG_DIR"] = str(_made(folder / "config"))
    options = replace(
        options,
        env={**own, **options.env},
        cwd=options.cwd or _made(folder / "cwd"),
        max_buffer_size=options.max_buffer_size or _MAX_LINE_BYTES,
    )
    if isinstance(options.system_prompt, str) and options.system_prompt:
        file = folder / "system-prompt.md"
        file.touch(mode=0o600)
        file.write_text(options.system_prompt, encoding="utf-8")
        options = replace(options, system_prompt={"type": "file", "path": str(file)})
    return options


def _made(folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    return folder


_open_sessions: set[Session] = set()


async def _close_all() -> None:
    await asyncio.gather(*(session.close() for session in list(_open_sessions)), return_exceptions=True)


at_exit(_close_all)
