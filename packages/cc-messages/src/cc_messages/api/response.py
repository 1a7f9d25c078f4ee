"""Responses that are not the model's: errors, and small documents. Every response has a request id."""

from collections.abc import Mapping
from secrets import token_hex

import httpx2

from cc_types import APIError, JsonValue

from .failure import error_body

__all__ = ["REQUEST_ID", "document", "error_headers", "error_response", "new_request_id"]

REQUEST_ID = "request-id"

_ID_BYTES = 12


def new_request_id() -> str:
    """An id for a response that the API has given none, or none that is known."""
    return f"req_{token_hex(_ID_BYTES)}"


def error_headers(error: APIError) -> dict[str, str]:
    """The headers with which the API sends an error: its id, and how long to wait before the next try."""
    headers = {REQUEST_ID: error.request_id or new_request_id()}
    if error.retry_after is not None:
        headers["retry-after"] = f"{error.retry_after:.15g}"
    return headers


def error_response(error: APIError) -> httpx2.Response:
    """An error as the API would have answered with it."""
    headers = error_headers(error)
    return httpx2.Response(error.status or 500, json=error_body(error, headers[REQUEST_ID]), headers=headers)


def document(body: Mapping[str, JsonValue]) -> httpx2.Response:
    """A JSON document."""
    return httpx2.Response(200, json=dict(body), headers={REQUEST_ID: new_request_id()})
