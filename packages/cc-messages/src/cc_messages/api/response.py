"""Responses without a model: errors, and small documents. Only the API gives them a request id."""

from collections.abc import Mapping

import httpx2

from cc_types import APIError, JsonValue

from .failure import error_body

__all__ = ["REQUEST_ID", "document", "error_headers", "error_response"]

REQUEST_ID = "request-id"


def error_headers(error: APIError) -> dict[str, str]:
    """Return the API's headers for an error: request id, and wait before a retry, if known."""
    headers = {} if error.request_id is None else {REQUEST_ID: error.request_id}
    if error.retry_after is not None:
        headers["retry-after"] = f"{error.retry_after:.15g}"
    return headers


def error_response(error: APIError) -> httpx2.Response:
    """Return an error as the API would send it."""
    return httpx2.Response(error.status or 500, json=error_body(error), headers=error_headers(error))


def document(body: Mapping[str, JsonValue]) -> httpx2.Response:
    """Return a JSON document."""
    return httpx2.Response(200, json=dict(body))
