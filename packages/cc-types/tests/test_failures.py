from typing import get_args

import pytest

from cc_types.failures import BEDROCK_TYPES, BY_CLI_NAME, BY_KIND, BY_STATUS, BY_TYPE, FAILURES, FailureKind, failure_of


def test_each_kind_status_and_cli_name_has_one_meaning() -> None:
    statuses = [failure.status for failure in FAILURES if failure.status is not None]
    names = [name for failure in FAILURES for name in failure.cli_names]

    assert BY_KIND.keys() == set(get_args(FailureKind))
    assert (len(statuses), len(names)) == (len(BY_STATUS), len(BY_CLI_NAME))


def test_the_rows_of_an_error_type_agree_on_retries() -> None:
    for failure in BY_STATUS.values():
        assert BY_TYPE[failure.error_type].is_retryable is failure.is_retryable


def test_bedrocks_exceptions_have_names_of_the_api() -> None:
    assert {*BEDROCK_TYPES.values()} <= BY_TYPE.keys()


@pytest.mark.parametrize(("status", "row"), [(418, 400), (429, 429), (503, 500)])
def test_other_statuses_count_as_invalid_request_or_server_error(status: int, row: int) -> None:
    assert failure_of(status).status == row


def test_clients_repeat_exactly_the_statuses_that_are_retryable() -> None:
    """The rule of the `anthropic` client for a response without `x-should-retry`."""
    statuses = {status for status in range(400, 600) if failure_of(status).is_retryable}

    assert statuses == {408, 409, 429, *range(500, 600)}
