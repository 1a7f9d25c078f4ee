"""Responses without a model: errors, and small documents. Only the API gives them a request id."""

from collections.abc import Mapping

import httpx2

from cc_types import APIError, JsonValue

from .failure import error_body

__all__ = ["REQUEST_ID", "MethodNotAllowedError", "document", "error_headers", "error_response"]

REQUEST_ID = "request-id"


class MethodNotAllowedError(APIError):
    """Raised if a path does not have a request's method; `allowed` are the methods that it has."""

    def __init__(self, method: str, path: str, allowed: str) -> None:
        message = f"{path} does not allow {method}: use {allowed}"
        super().__init__(status=405, error_type="invalid_request_error", message=message)
        self.allowed = allowed


def error_headers(error: APIError) -> dict[str, str]:
    """Return the headers for an error: request id, wait before a retry, and allowed methods, if known."""
    headers = {} if error.request_id is None else {REQUEST_ID: error.request_id}
    if isinstance(error, MethodNotAllowedError):
        headers["allow"] = error.allowed
    if error.retry_after is not None:
        headers["retry-after"] = f"{error.retry_after:.15g}"
    return headers


def error_response(error: APIError) -> httpx2.Response:
    """Return an error as the API would send it."""
    return httpx2.Response(error.status or 500, json=error_body(error), headers=error_headers(error))


def document(body: Mapping[str, JsonValue]) -> httpx2.Response:
    """Return a JSON document."""
    return httpx2.Response(200, json=dict(body))
