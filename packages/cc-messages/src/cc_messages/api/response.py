"""Responses without a model: errors, and small documents. Every response has a request id."""

from collections.abc import Mapping
from secrets import token_hex

import httpx2

from cc_types import APIError, JsonValue

from .failure import error_body

__all__ = ["REQUEST_ID", "document", "error_headers", "error_response", "new_request_id"]

REQUEST_ID = "request-id"

_ID_BYTES = 12


def new_request_id() -> str:
    """Return an id for a response without an id from the API."""
    return f"req_{token_hex(_ID_BYTES)}"


def error_headers(error: APIError) -> dict[str, str]:
    """Return the API's headers for an error: request id, and wait before a retry."""
    headers = {REQUEST_ID: error.request_id or new_request_id()}
    if error.retry_after is not None:
        headers["retry-after"] = f"{error.retry_after:.15g}"
    return headers


def error_response(error: APIError) -> httpx2.Response:
    """Return an error as the API would send it."""
    headers = error_headers(error)
    return httpx2.Response(error.status or 500, json=error_body(error, headers[REQUEST_ID]), headers=headers)


def document(body: Mapping[str, JsonValue]) -> httpx2.Response:
    """Return a JSON document."""
    return httpx2.Response(200, json=dict(body), headers={REQUEST_ID: new_request_id()})
