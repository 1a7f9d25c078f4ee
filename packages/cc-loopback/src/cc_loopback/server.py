"""`LoopbackServer`: the scripted API with its recordings and faults, as a context manager.

The top of the package: it puts the application into its thread and owns the CLI's private folder. It knows nothing of
pytest and starts no CLI.
"""

from collections.abc import Mapping
from types import TracebackType
from typing import NamedTuple, Self

from .app import MessagesApp, Record
from .errors import ServerStateError
from .faults import FaultQueue, make_fault
from .home import PrivateHome, cli_environment
from .responder import default_respond
from .routes import MESSAGES
from .thread import ServerThread
from .types import Call, JsonObject, Login, Respond


class _Running(NamedTuple):
    url: str
    home: PrivateHome


class LoopbackServer:
    """The Anthropic Messages API on 127.0.0.1, answering what `respond` says.

    Use it with `with` or `async with`; it serves from a thread with an event loop of its own. It runs once.

    Args:
        respond: Called with the body of each valid request for a message, in the server's thread, so a sync one must
            not wait for another request. It may be a coroutine function; it is cancelled when the client goes away. It
            returns content blocks, a text, or a message with `content`; what it raises becomes a 500 and stands in
            `errors`. Default: call each offered tool once, then answer with a summary.
        event_delay: Seconds before each event of a stream.
        port: Port to listen on; 0 takes a free one.
    """

    def __init__(self, respond: Respond | None = None, *, event_delay: float = 0.0, port: int = 0) -> None:
        self._record = Record()
        self._faults = FaultQueue()
        self._first_respond = respond or default_respond
        self._app = MessagesApp(self._first_respond, self._record, self._faults, event_delay)
        self._thread = ServerThread(self._app, port)
        self._running: _Running | None = None
        self._was_started = False

    @property
    def respond(self) -> Respond:
        """The responder; set another one at any time, for the requests that arrive from then on."""
        return self._app.respond

    @respond.setter
    def respond(self, respond: Respond) -> None:
        self._app.respond = respond

    @property
    def requests(self) -> list[JsonObject]:
        """The body of every request for a message, parsed, in order of arrival; those that got a fault too.

        One of a cloud has the `model` of its path in it, on Amazon Bedrock also `stream`; `calls` has it as it came.

        The live list: the server's thread only appends to it, so it may be read and cleared from any thread.
        """
        return self._record.requests

    @property
    def calls(self) -> list[Call]:
        """Every HTTP request of any path, in order of arrival; live like `requests`."""
        return self._record.calls

    @property
    def errors(self) -> list[BaseException]:
        """What `respond` raised, or what was wrong with its reply; live like `requests`."""
        return self._record.errors

    @property
    def url(self) -> str:
        """The base URL, such as `http://127.0.0.1:40123`.

        Raises:
            ServerStateError: The server is not running.
        """
        return self._state().url

    def env(self, login: Login = "api-key") -> dict[str, str]:
        """Return the variables that point a Claude Code CLI here, to be laid over `os.environ`.

        They name a home and a config folder of the server's own, which are removed when it stops.

        Args:
            login: What the CLI has: a made-up API key, a made-up OAuth token, or Vertex AI or Amazon Bedrock at the
                server's address, without credentials. The variables of the other logins are emptied.

        Raises:
            ServerStateError: The server is not running.
        """
        running = self._state()
        return cli_environment(running.url, running.home, login)

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
        """Let the next requests fail; a second call takes effect after the first one is used up.

        Args:
            status: Answer with this HTTP status and the API's error body.
            times: How many requests it holds for.
            after_events: Send so many events of a stream first, pings included. Then comes an `error` event if there is
                a `status`, and else the connection breaks off. An answer that is not streamed gets the status, or
                breaks off half-way.
            error_type: The error's type, where it is not the one that belongs to `status`.
            message: The error's message, where it is not the usual one.
            headers: Further response headers, such as `retry-after`.
            delay: Seconds before answering; given alone, the answer is late and otherwise as it would have been.
            path: The path whose requests fail; those of a cloud count as requests to the API's own path for the same.

        Raises:
            ValueError: None of `status`, `after_events` and `delay` is given, or a number makes no sense.
        """
        self._faults.add(path, make_fault(status, after_events, error_type, message, headers, delay), times)

    def reset(self) -> None:
        """Forget recordings, errors and waiting faults, and answer as `respond` said when the server was made.

        So one server can serve many tests. End or empty the processes that still have a request under way first:
        such a request is answered, and may be recorded, after the reset.
        """
        self._app.respond = self._first_respond
        self._faults.clear()
        self._record.clear()

    def start(self) -> Self:
        """Start serving, and return when connections are accepted.

        Raises:
            OSError: The port is taken.
            ServerStateError: The server has run before, or did not come up in time.
        """
        if self._was_started:
            raise ServerStateError("a server runs once; make another")
        self._was_started = True
        home = PrivateHome()
        try:
            port = self._thread.start()
        except BaseException:
            home.remove()
            raise
        self._running = _Running(f"http://127.0.0.1:{port}", home)
        return self

    def stop(self) -> None:
        """Stop serving, whatever is in progress, and remove the private folder. Stopping twice is allowed.

        A CLI that still runs may write its configuration once more, and so make the folder anew: end it first.

        Raises:
            ServerStateError: `respond` blocks the server's thread.
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

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    # Both wait for a few milliseconds in the caller's loop. A helper thread would add an await, and in a cancelled
    # scope that await would leave the server running.
    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
