"""`LoopbackServer`: the scripted API with recorded requests and injected faults, as a context manager.

It runs the application in a thread and owns the CLI's private folder. It knows no pytest and starts no CLI.
"""

import traceback
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self, cast

from .api.errors import ServerStateError
from .api.routes import MESSAGES
from .api.thinking import ThinkingSigner
from .api.types import Call, JsonObject, Login, Respond
from .app import Fault, MessagesApp
from .home import PrivateHome, cli_environment, prompt_folders, recording_environment
from .recording.tape import Cassette, Tape
from .responder import default_respond
from .script import Script, Step
from .thread import ServerThread


class _Running(NamedTuple):
    url: str
    home: PrivateHome


class LoopbackServer:
    """The Anthropic Messages API on 127.0.0.1, with answers from `respond`.

    Use it with `with` or `async with`. It serves in a thread with an event loop of its own, and can run only once.

    Args:
        respond: Callback that gets the body of each valid request for a message. It returns content blocks, a text, or
            a message with `content`; an exception becomes a response with status 424, which no client retries, and is
            added to `errors`. It runs in the server thread, so a sync callback must not wait for another request. A
            coroutine function is cancelled when the client disconnects. Default: call each offered tool once, then
            answer with a summary.
        event_delay: Seconds before each stream event.
        port: Port to listen on; 0 chooses a free port.
        cassette: File with recorded answers to replay, or to record, in place of `respond`.
        signs_thinking: Sign each thinking block, and check it in later requests as the API does for its newest models:
            if the system prompt, tools or an earlier message have changed, the request gets a 400, or loses the block
            if it asks for `drop_block`. A block of another model is dropped. `respond` does not see dropped blocks.

    Raises:
        TypeError: `respond` is not a function.
        ValueError: `cassette` is given together with `respond` or `signs_thinking`.
    """

    def __init__(
        self,
        respond: Respond | None = None,
        *,
        event_delay: float = 0.0,
        port: int = 0,
        cassette: Cassette | None = None,
        signs_thinking: bool = False,
    ) -> None:
        if respond is not None and cassette is not None:
            raise ValueError("a server answers with `respond` or from a `cassette`, not with both")
        if signs_thinking and cassette is not None:
            raise ValueError("a `cassette` has the signatures of the recorded API; leave out `signs_thinking`")
        self._cassette = cassette
        self._initial_respond = default_respond if respond is None else _checked(respond)
        signer = ThinkingSigner() if signs_thinking else None
        self._app = MessagesApp(self._initial_respond, event_delay, signer)
        self._thread = ServerThread(self._app, port)
        self._running: _Running | None = None
        self._was_started = False

    @property
    def respond(self) -> Respond:
        """The responder. Set another one at any time, for all later requests.

        Raises:
            TypeError: The new one is not a function.
        """
        return self._app.respond

    @respond.setter
    def respond(self, respond: Respond) -> None:
        self._app.respond = _checked(respond)

    def script(self, steps: Sequence[Step]) -> None:
        """Answer each later request with the next step, and a request after the last step with an error.

        `script([call("stock", article="kettle"), "3 left"])` calls a tool, and then answers with a text. An error shows
        the step and the request. With the fixture `loopback`, a test also fails if steps remain.

        Args:
            steps: Replies as from `respond`, tool calls made with `call()`, or functions as for `respond`.

        Raises:
            ReplyError: A step is not a reply.
        """
        caller = traceback.extract_stack(limit=2)[0]
        self._app.respond = Script(steps, f"{Path(caller.filename).name}:{caller.lineno}")

    @property
    def unused_steps(self) -> str:
        """Text about the script steps that no request has used; empty if there are none, or no script."""
        respond = self._app.respond
        return respond.problem if isinstance(respond, Script) else ""

    @property
    def requests(self) -> list[JsonObject]:
        """The parsed body of every request for a message, in order of arrival, including requests with a fault.

        A body for a cloud contains the path's `model`, and on Amazon Bedrock `stream`; `calls` has the original.

        This is the live list: the server thread only appends to it, so any thread may read and clear it.
        """
        return self._app.requests

    @property
    def calls(self) -> list[Call]:
        """Every HTTP request to any path, in order of arrival; live like `requests`."""
        return self._app.calls

    @property
    def errors(self) -> list[BaseException]:
        """Exceptions from `respond`, and errors from invalid replies; live like `requests`."""
        return self._app.errors

    @property
    def url(self) -> str:
        """The base URL, such as `http://127.0.0.1:40123`.

        Raises:
            ServerStateError: The server is not running.
        """
        return self._state().url

    def env(self, login: Login | None = None) -> dict[str, str]:
        """Return the variables that direct a Claude Code CLI to this server. Add them to `os.environ`.

        They name a private home and config folder, which are removed when the server stops.

        While a cassette is recorded, the CLI uses the login in `os.environ`, else in the user's config folder.

        Args:
            login: The CLI login: a fake API key, a fake OAuth token, or Vertex AI or Amazon Bedrock at the server
                address, without credentials. The variables for other logins are set to empty strings. Default: an API
                key, or the kind of login that the cassette was recorded with.

        Raises:
            CassetteError: A cassette is recorded, and `os.environ` selects the API of a cloud.
            ServerStateError: The server is not running.
            ValueError: There is no such login.
        """
        running, tape = self._state(), self._app.tape
        if tape and tape.records:
            return recording_environment(running.url, running.home)
        return cli_environment(running.url, running.home, login or (tape.login if tape else "api-key"))

    def fail_next(
        self,
        status: int | None = None,
        *,
        times: int = 1,
        after_events: int | None = None,
        error_type: str | None = None,
        message: str | None = None,
        headers: Mapping[str, str] | None = None,
        delay: float | None = None,
        path: str = MESSAGES,
    ) -> None:
        """Make the next requests fail. Faults from a second call follow those from the first.

        Args:
            status: HTTP status of the response, with the API error body.
            times: Number of requests that fail.
            after_events: Number of stream events to send first, pings included. Then comes an `error` event if there is
                a `status`, otherwise the connection ends. A response without streaming has the status, or ends after
                half of the body.
            error_type: Error type. Default: the type that belongs to `status`.
            message: Error message. Default: the usual message for the type.
            headers: Further response headers, such as `retry-after`.
            delay: Seconds before the response. Given alone, the response is late and otherwise normal.
            path: Path of the requests that fail. Requests to a cloud count as requests to the API path.

        Raises:
            ValueError: None of `status`, `after_events` and `delay` is given, a number is out of range, or
                `after_events` is given although a cassette answers.
        """
        if self._cassette and after_events is not None:
            raise ValueError("after_events is for scripted answers; a cassette's answers are whole or come late")
        if status is None and after_events is None and delay is None:
            raise ValueError("a fault needs at least one of status, after_events and delay")
        fault = Fault(status, after_events, error_type, message, dict(headers or {}), delay or 0.0)
        if times < 1:
            raise ValueError(f"times must be at least 1, but is {times}")
        self._app.faults.setdefault(path, deque()).extend([fault] * times)

    def reset(self) -> None:
        """Clear recorded requests, errors, queued faults and cached prompts; restore the initial `respond`.

        First end the processes that still have a pending request: such a request is answered, and may be recorded,
        after the reset. A cassette's used answers stay used.
        """
        self._app.respond = self._initial_respond
        self._app.faults.clear()
        # The lists are emptied in place, because users may hold references to them.
        for entries in (self.calls, self.requests, self.errors):
            entries.clear()
        self._app.cache.clear()

    def start(self) -> Self:
        """Start the server, and return when it accepts connections.

        Raises:
            CassetteError: The cassette or a setting is missing or invalid.
            OSError: The port is in use.
            ServerStateError: The server has run before, or did not start in time.
        """
        if self._was_started:
            raise ServerStateError("a server can run only once; create a new one")
        self._was_started = True
        home = PrivateHome()
        try:
            if self._cassette:
                self._app.tape = Tape(self._cassette, prompt_folders(home))
            port = self._thread.start()
        except BaseException:
            home.remove()
            raise
        self._running = _Running(f"http://127.0.0.1:{port}", home)
        return self

    def stop(self) -> None:
        """Stop the server, cancel running requests, and remove the private folder. Idempotent.

        A CLI that still runs may write the configuration again and so recreate the folder: end it first.

        Raises:
            ServerStateError: `respond` blocks the server thread.
        """
        running, self._running = self._running, None
        if running is None:
            return
        try:
            self._thread.stop()
        finally:
            running.home.remove()

    def _state(self) -> _Running:
        if self._running is None:
            raise ServerStateError("the server is not running; use it in a `with` block")
        return self._running

    def __repr__(self) -> str:
        return f"<LoopbackServer {self._running.url if self._running else 'not running'}, {len(self.calls)} calls>"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # Both async methods block the caller's loop for a few milliseconds. A helper thread would need an await, which in a
    # cancelled scope would leave the server running.
    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(self, *_: object) -> None:
        self.stop()


def _checked(respond: object) -> Respond:
    if callable(respond):
        return cast(Respond, respond)
    raise TypeError(
        f"respond must be a function from a request's body to a reply, not {respond!r}: use `lambda body: …` for a "
        "fixed reply, or cc_loopback.default_respond for the answers without a script"
    )
