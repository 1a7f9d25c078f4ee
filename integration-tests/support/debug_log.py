"""Lines of the CLI's debug log on stderr about an API call with the number 7."""

__all__ = ["ANSWERED", "SENDING"]

SENDING = """\
[Anthropic SDK DEBUG] [log_3e634b] sending request {
  method: "POST",
  options: {
    body: {
      messages: [Array ...],
    },
    timeout: 600007,
  },
  headers: {
    "x-api-key": "***",
    "request-id": "of the request",
  },
}"""
ANSWERED = """\
[Anthropic SDK INFO] [log_3e634b, request-id: "req_1"] post http://127.0.0.1/v1/messages succeeded in 5ms
[Anthropic SDK DEBUG] [log_3e634b] response start {
  url: "http://127.0.0.1/v1/messages?beta=true",
  status: 200,
  headers: {
    "anthropic-ratelimit-requests-remaining": "7",
    date: "Fri, 20 Nov 2026 14:36:31 GMT",
    "request-id": "req_1",
    "set-cookie": "secret",
  },
  durationMs: 5,
}
[Anthropic SDK DEBUG] response 200 http://127.0.0.1/v1/messages?beta=true Headers {
  "request-id": "req_2",
} ReadableStream { locked: false, state: 'readable', supportsBYOB: false }"""
