"""The table of all failures: statuses and names of the API, names of the CLI, kinds, retries, and advice."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from .rate_limits import RateLimits

FailureKind: TypeAlias = Literal[
    "auth", "budget", "hook_stopped", "interrupted", "invalid_request", "max_tokens", "max_turns", "other",
    "overloaded", "prompt_blocked", "rate_limit", "refusal", "server", "too_long",
]  # fmt: skip
"""Kind of a failed turn; `"other"` is none of the others."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure of a request or a turn."""

    kind: FailureKind
    """The kind in which sessions report it."""
    advice: str
    """A sentence that says how to go on."""
    status: int | None = None
    """The API HTTP status; None if the API has no error for it."""
    error_type: str = ""
    """The API name (https://docs.anthropic.com/en/api/errors); empty if there is none."""
    cli_names: tuple[str, ...] = ()
    """The CLI names: the error of an assistant message, or the subtype or terminal reason of a result."""
    is_retryable: bool = False
    """True if the same request may succeed later. Clients of the API then repeat it by themselves."""


_LATER = "Try again later."
_CHANGE = "Change the request before sending it again."
_PARTIAL = "what was said until then is in `turn`."

FAILURES = (
    Failure("invalid_request", _CHANGE, 400, "invalid_request_error", ("invalid_request",)),
    Failure("auth", "Log in to Claude Code or set ANTHROPIC_API_KEY.", 401, "authentication_error",
            ("authentication_failed",)),
    Failure("auth", "Check the billing of the account.", 402, "billing_error", ("billing_error",)),
    Failure("auth", "Use another model or feature, or ask the account's administrator for access.",
            403, "permission_error", ("oauth_org_not_allowed",)),
    Failure("invalid_request", "Check the model's name; Claude Code also takes the aliases sonnet, opus and haiku.",
            404, "not_found_error", ("model_not_found",)),
    Failure("server", _LATER, 408, "timeout_error", is_retryable=True),
    Failure("invalid_request", _LATER, 409, "conflict_error", is_retryable=True),
    Failure("too_long", "Send less, or begin a new conversation.", 413, "request_too_large",
            ("image_error", "prompt_too_long")),
    Failure("rate_limit", "The rate limit is reached: wait, then try again with fewer requests at a time.",
            429, "rate_limit_error", ("rate_limit",), is_retryable=True),
    Failure("server", _LATER, 500, "api_error", is_retryable=True),
    Failure("server", _LATER, 504, "timeout_error", is_retryable=True),
    Failure("overloaded", _LATER, 529, "overloaded_error", ("overloaded",), is_retryable=True),
    # The CLI uses this name for lost connections, so it stands for no status.
    Failure("server", _LATER, cli_names=("server_error",), is_retryable=True),
    Failure("budget", f"Allow more with `max_cost_usd`; {_PARTIAL}",
            cli_names=("budget_exhausted", "error_max_budget_usd")),
    Failure("hook_stopped", "A hook of this session has ended the turn.", cli_names=("hook_stopped",)),
    Failure("interrupted", _PARTIAL.capitalize(), cli_names=("aborted_streaming", "aborted_tools")),
    Failure("max_tokens", "Ask for less at once, or allow more tokens.", cli_names=("max_output_tokens",)),
    Failure("max_turns", f"Allow more with the option `max_turns`; {_PARTIAL}",
            cli_names=("error_max_turns", "max_turns")),
    Failure("other", "All that came of it is in `turn`."),
    Failure("prompt_blocked", "A hook of this session did not let the prompt pass."),
    Failure("refusal", "The model refuses to answer; ask something else in a new conversation."),
)  # fmt: skip

BY_STATUS = {failure.status: failure for failure in FAILURES if failure.status is not None}
BY_TYPE = {failure.error_type: failure for failure in FAILURES if failure.error_type}
"""By the API name; for two statuses with the same name, the larger one."""
BEDROCK_TYPES = {
    "internalServerException": "api_error",
    "modelStreamErrorException": "api_error",
    "modelTimeoutException": "timeout_error",
    "serviceUnavailableException": "overloaded_error",
    "throttlingException": "rate_limit_error",
    "validationException": "invalid_request_error",
}
"""API error names for exceptions in streams from Amazon Bedrock, which have no status."""
BY_CLI_NAME = {name: failure for failure in FAILURES for name in failure.cli_names}
BY_KIND = {failure.kind: failure for failure in reversed(FAILURES)}
"""By kind: the first row of the kind, whose `is_retryable` and advice hold for all turns of the kind."""


def failure_of(status: int) -> Failure:
    """Return the failure for an HTTP status, with a default for other 4xx and 5xx statuses."""
    return BY_STATUS.get(status) or BY_STATUS[500 if status >= 500 else 400]


def advice_of(status: int) -> str:
    """Return the advice for an HTTP status; empty for a 4xx status that the API does not send."""
    return "" if status < 500 and status not in BY_STATUS else failure_of(status).advice


def plan_limit_advice(limits: RateLimits, resets_at: datetime) -> str:
    """Return the advice for a plan with a used-up window, which resets at `resets_at`."""
    name = "" if limits.exhausted is None else f" {limits.exhausted.kind}"
    until = f"{resets_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return f"The plan's limit{name} is used up until {until}: wait until then, or use another model."
