"""The package's stable names."""

import cc_messages


def test_the_public_names_are_all_there_and_all_there_is() -> None:
    assert cc_messages.__all__ == [
        "APPROVED",
        "ERROR_EXTENSION",
        "RequestContext",
        "CLICall",
        "CLITools",
        "ClaudeCodeTransport",
        "LimitCallback",
        "ClaudeCodeTools",
        "RequestReport",
        "request_context",
        "create_app",
        "retry_after",
    ]
    assert all(hasattr(cc_messages, name) for name in cc_messages.__all__)
