"""Parsing of requests, and the process that each needs. Pure functions."""

from cc_session.internals import Login

from .api.failure import invalid
from .api.passed_headers import PassedHeaders
from .api.request import MessagesRequest, parse_object, request_head, whole_request
from .context.request_context import RequestContext
from .loop.launch import loop_launch
from .loop.request import LoopRequest, loop_request
from .process.launch import LaunchBuilder, RequestLaunch

__all__ = ["launch_for", "parse_request"]


def parse_request(
    body: bytes,
    betas: str = "",
    context: RequestContext | None = None,
    headers: PassedHeaders | None = None,
    *,
    login: Login = Login.API_KEY,
    places_breakpoints: bool = False,
) -> MessagesRequest:
    """Parse a request; return a `LoopRequest` if the CLI calls some tools by itself.

    Args:
        body: The HTTP body.
        betas: The `anthropic-beta` header.
        context: The caller's options outside the body.
        headers: Headers for the API.
        login: The processes' login.
        places_breakpoints: True if a request without cache breakpoints gets some.
    """
    try:
        fields = parse_object(body)
        head = request_head(fields, betas, headers or PassedHeaders(), context)
        loop = loop_request(fields, head)
        return loop or whole_request(fields, head, login, places_breakpoints=places_breakpoints)
    except RecursionError as error:
        raise invalid("The request body is nested too deeply") from error


def launch_for(request: MessagesRequest, builder: LaunchBuilder) -> RequestLaunch:
    """Return the launch for `request`."""
    return loop_launch(request, builder) if isinstance(request, LoopRequest) else builder.whole(request)
