import inspect

import cc_types


def test_the_names_that_are_promised_are_there() -> None:
    promised = {
        "CLIResponse", "CLIUsage", "ServerToolUse", "CacheCreation", "ModelUsage", "PermissionDenial", "JsonValue",
        "ClaudeCodeError", "CLINotFoundError", "CLIConnectionError", "ProcessExitedError", "CLIJSONDecodeError",
        "MessageParseError", "ControlTimeoutError",
    }  # fmt: skip

    assert promised <= set(cc_types.__all__)
    assert all(hasattr(cc_types, name) for name in cc_types.__all__)


def test_every_field_says_what_it_is() -> None:
    models = [getattr(cc_types, name) for name in cc_types.__all__ if name != "JsonValue"]
    models = [model for model in models if inspect.isclass(model) and issubclass(model, cc_types.WireModel)]

    undocumented = [
        f"{model.__name__}.{name}"
        for model in models
        for name, field in model.model_fields.items()
        if not field.description
    ]

    assert undocumented == []
