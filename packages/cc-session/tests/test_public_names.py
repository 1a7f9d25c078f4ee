import inspect

import pytest

import cc_session
from cc_session import HooksDisabledError, McpServerFailedError, SessionBusyError, UnknownToolCallError
from cc_types import ClaudeCodeError


def test_every_public_name_is_there_and_says_what_it_is() -> None:
    for name in cc_session.__all__:
        value = getattr(cc_session, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, name
    assert len({*cc_session.__all__}) == len(cc_session.__all__)


@pytest.mark.parametrize(
    "error",
    [
        SessionBusyError(),
        UnknownToolCallError(call_id="toolu_1"),
        HooksDisabledError("it is too old"),
        McpServerFailedError({"a": "It broke."}),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_pickling(error: ClaudeCodeError) -> None:
    """SES-69, SES-71."""
    import pickle

    copy = pickle.loads(pickle.dumps(error))

    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
