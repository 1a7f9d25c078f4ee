"""Copies and keys of callers' values: two launches are the same only by a closed list."""

import functools
import operator
from collections import OrderedDict, UserDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import pytest
from claude_agent_sdk import AgentDefinition, ClaudeAgentOptions, HookMatcher, create_sdk_mcp_server
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from cc_session import (
    Hook,
    HookResult,
    HTTPServer,
    Policy,
    Questions,
    Rule,
    StdioServer,
    Timeouts,
    hook,
    sealed_options,
)
from cc_session.identity import identity, owned
from cc_session.pool.launch import Launch


@dataclass(frozen=True)
class Approver:
    """State with `__call__`: a usual way to write a callback."""

    answer: str = "yes"

    def __call__(self, *_arguments: object) -> str:
        return self.answer

    def method(self, *_arguments: object) -> str:
        return self.answer


class Pair(NamedTuple):
    """A callable tuple."""

    answer: str = "yes"

    def __call__(self, *_arguments: object) -> str:
        return self.answer


class Table(UserDict[str, str]):
    """A callable mapping."""

    def __call__(self, *_arguments: object) -> str:
        return "yes"


class Yes:
    """An object that says that it is equal to every other."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1

    def __call__(self, *_arguments: object) -> str:
        return "yes"


class Model(BaseModel):
    """A callable model of pydantic."""

    answer: str = "yes"

    def __call__(self, *_arguments: object) -> str:
        return self.answer


def function() -> Callable[..., str]:
    def answer(*_arguments: object) -> str:
        return "yes"

    return answer


class Level(IntEnum):
    """An integer with a name."""

    ONE = 1


class Colour(StrEnum):
    """A text with a name."""

    RED = "red"


CALLABLES: dict[str, Callable[[], Any]] = {
    "dataclass": Approver,
    "named tuple": Pair,
    "mapping": Table,
    "equal to all": Yes,
    "pydantic model": Model,
    "partial": lambda: functools.partial(operator.add, 1),
    "bound method": lambda: Approver().method,
    "operator": lambda: operator.itemgetter("a"),
    "function": function,
}

# Where a caller's function stands in a launch.
PLACES: dict[str, Callable[[Any], Launch]] = {
    "can_use_tool": lambda value: Launch(options=ClaudeAgentOptions(can_use_tool=value)),
    "stderr": lambda value: Launch(options=ClaudeAgentOptions(stderr=value)),
    "hooks of the SDK": lambda value: Launch(
        options=ClaudeAgentOptions(hooks={"PreToolUse": [HookMatcher(hooks=[value])]})
    ),
    "hook": lambda value: Launch(options=ClaudeAgentOptions(), hooks=[Hook("PreToolUse", value)]),
    "questions": lambda value: Launch(options=ClaudeAgentOptions(), questions=Questions(value)),
    "ask": lambda value: Launch(options=ClaudeAgentOptions(), policy=Policy(default="ask", ask=value)),
    "when": lambda value: Launch(options=ClaudeAgentOptions(), policy=Policy([Rule("Bash", "deny", when=value)])),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", CALLABLES)
def test_two_objects_that_can_be_called_are_never_the_same(place: str, kind: str) -> None:
    """SES-133: whatever they say of themselves."""
    launch, make = PLACES[place], CALLABLES[kind]
    one, other = make(), make()
    assert launch(one).key != launch(other).key
    if place not in ("ask", "when"):  # a policy is the same only as itself
        assert launch(one).key == launch(one).key
    assert type(launch(one).options) is ClaudeAgentOptions


def test_a_policy_a_hook_and_a_bound_method_are_found_again_as_the_same_objects() -> None:
    """SES-133."""
    approver: Any = Approver()
    policy = Policy(default="ask", ask=approver)

    @hook("PreToolUse")
    def mine(_input: object) -> HookResult:
        return HookResult()

    def launch() -> Launch:
        options = ClaudeAgentOptions(can_use_tool=approver.method)
        return Launch(options=options, policy=policy, hooks=[mine], questions=Questions(approver.method))

    assert launch().key == launch().key


DIFFERENT: list[tuple[object, object]] = [
    (True, 1),
    (1, 1.0),
    (0, False),
    (0.0, -0.0),
    ("1", 1),
    ("a", b"a"),
    (None, "None"),
    ([1], (1,)),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({1: "a"}, {True: "a"}),
    ({1}, {True}),
    ([[], [[]]], [[[]], []]),
    (["ab", "c"], ["a", "bc"]),
    (AgentDefinition(description="a", prompt="p"), AgentDefinition(description="b", prompt="p")),
    (StdioServer("a", env={"A": "1"}), StdioServer("a", env={"A": "2"})),
    (StdioServer("a"), HTTPServer("https://a")),
    (Timeouts(), Timeouts(mcp=1)),
    (Approver(), Approver()),
    (Yes(), Yes()),
    (Model(), Model()),
    (object(), object()),
]
SAME: list[tuple[object, object]] = [
    (float("nan"), float("nan")),
    ({"a": [1, {"b": None}]}, OrderedDict(a=[1, MappingProxyType({"b": None})])),
    ({"a": "b"}, UserDict({"a": "b"})),
    (1, Level.ONE),
    ("red", Colour.RED),
    ({"b", "a"}, {"a", "b"}),
    (StdioServer("a", ["b"], {"A": "1"}), StdioServer("a", ["b"], {"A": "1"})),
    (AgentDefinition(description="a", prompt="p"), AgentDefinition(description="a", prompt="p")),
    (Timeouts(mcp=2), Timeouts(mcp=2)),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_values_are_the_same_only_with_their_types(one: object, other: object) -> None:
    """SES-133."""
    assert identity(owned(one)) != identity(owned(other))
    assert identity(owned([one])) != identity(owned([other]))
    assert identity(owned({"a": one})) != identity(owned({"a": other}))


@pytest.mark.parametrize(("one", "other"), SAME)
def test_plain_values_and_definitions_are_the_same_by_content(one: object, other: object) -> None:
    """SES-133."""
    assert identity(owned(one)) == identity(owned(other))
    assert hash(identity(owned(one))) == hash(identity(owned(other)))


_PLAIN = (
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, -0.0, 1.0]) | st.sampled_from(["", "a", "1"])
)
_JSON = st.recursive(_PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner))


@given(one=_JSON, other=_JSON)
def test_keys_are_equal_if_and_only_if_the_values_are_written_alike(one: object, other: object) -> None:
    """SES-133: `repr` tells types, order and the sign of zero apart."""
    assert (identity(owned(one)) == identity(owned(other))) == (repr(one) == repr(other))


# Few values of each field, so that pairs often differ in one alone, by a type or a nested value.
_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "env": st.sampled_from([{}, {"A": "1"}, {"A": "2"}]),
    "model": st.sampled_from([None, "claude-sonnet-5", "claude-opus-4-8"]),
    "system_prompt": st.sampled_from([None, "Be.", {"type": "preset", "preset": "claude_code"}]),
    "permission_mode": st.sampled_from([None, "default", "acceptEdits", "plan"]),
    "effort": st.sampled_from([None, "low", "high"]),
    "thinking": st.sampled_from([None, {"type": "disabled"}, {"type": "adaptive"}]),
    "tools": st.sampled_from([[], ["Bash"], ["Bash", "Read"], ["Read", "Bash"]]),
    "max_turns": st.sampled_from([None, 1, 2]),
    "output_format": st.sampled_from([0, 1, True, False, 1.0]).map(
        lambda value: {"type": "json_schema", "schema": {"enum": [value]}}
    ),
    "agents": st.sampled_from(["A.", "B."]).map(lambda text: {"a": AgentDefinition(description=text, prompt="p")}),
    "can_use_tool": st.sampled_from([Approver(), Approver()]),
    "mcp_servers": st.sampled_from(["alice", "bob"]).map(lambda who: {"a": StdioServer(who)}),
    "cwd": st.sampled_from([None, "/", Path("/tmp")]),
}


def _seen(values: dict[str, Any]) -> str:
    """Return all that a fresh process would show; a callback shows which object it is."""
    return repr({name: id(value) if callable(value) else value for name, value in values.items()})


@given(one=st.fixed_dictionaries({}, optional=_FIELDS), other=st.fixed_dictionaries({}, optional=_FIELDS))
def test_launches_that_differ_in_anything_differ_in_their_keys_or_settings(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    """SES-133: and equal launches are the same."""

    def key(values: dict[str, Any]) -> object:
        launch = Launch.of(ClaudeAgentOptions(), cast(Any, values))
        return launch.key, identity(owned(launch.settings))

    names = ("model", "system_prompt", "permission_mode", "effort", "thinking", "max_turns", "cwd")
    empty: dict[str, Any] = dict.fromkeys(names)
    empty["env"] = {}
    is_same = _seen({**empty, **dict(sorted(one.items()))}) == _seen({**empty, **dict(sorted(other.items()))})
    assert (key(one) == key(other)) == is_same


def _changes(value: Any, word: str) -> Iterator[Callable[[], object]]:
    """Yield functions that each change a mutable part in place."""
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        yield lambda: items.update({word: word})
        for item in [*items.values()]:
            yield from _changes(item, word)
    elif isinstance(value, list):
        members = cast("list[Any]", value)
        yield lambda: members.append(word)
        for item in [*members]:
            yield from _changes(item, word)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from _changes(getattr(value, name), word)


def _launch() -> tuple[Launch, list[Any]]:
    """Return a launch, and the caller's values in it."""
    server = {"type": "stdio", "command": "server", "args": ["a"], "env": {"TOKEN": "alice"}}
    options = ClaudeAgentOptions(
        env={"A": "1"},
        allowed_tools=["Read"],
        agents={"helper": AgentDefinition(description="d", prompt="p", tools=["Read"])},
        mcp_servers={"own": server},  # pyright: ignore[reportArgumentType]
        output_format={"type": "json_schema", "schema": {"enum": [False, True]}},
        sandbox={"enabled": True, "network": {"allowUnixSockets": ["a"]}},
        plugins=[{"type": "local", "path": "a"}],
        extra_args={"a": None},
        hooks={"PreToolUse": [HookMatcher(hooks=[])]},
        add_dirs=["a"],
    )
    servers: dict[str, Any] = {
        "mine": {"type": "http", "url": "https://a", "headers": {"Authorization": "alice"}},
        "other": StdioServer("program", ["a"], {"TOKEN": "alice"}),
    }
    hooks: list[Hook[Any]] = []
    return Launch(options=options, mcp_servers=servers, hooks=hooks), [options, servers, hooks]


def test_a_launch_does_not_change_with_its_caller_s_values() -> None:
    """SES-133: and a launch that is made from the changed values is another."""
    count = sum(1 for value in _launch()[1] for _ in _changes(value, "bob"))
    assert count > 20
    for number in range(count):
        launch, values = _launch()
        before, settings = launch.key, identity(owned(launch.settings))
        [*changes] = [change for value in values for change in _changes(value, "bob")]
        changes[number]()
        assert (launch.key, identity(owned(launch.settings))) == (before, settings)
        assert identity(launch.options) == identity(_launch()[0].options)
        options, servers, hooks = values
        if hooks or "bob" in options.plugins:  # a text is neither
            continue
        later = Launch(options=options, mcp_servers=servers)
        assert (later.key, identity(owned(later.settings))) != (before, settings)


@pytest.mark.parametrize("changes", [{}, {"tools": ["Bash"]}, {"tools": None}])
def test_a_process_has_this_program_s_variables(changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """SES-133: a changed variable starts another process, whether it has programs or not."""
    launches: list[Launch] = []
    for name in ("DISABLE_PROMPT_CACHING", "NODE_TLS_REJECT_UNAUTHORIZED", "PYTEST_CURRENT_TEST"):
        monkeypatch.setenv(name, "1")
        launches.append(Launch(options=replace(sealed_options(), **changes)))
    keys = [launch.key for launch in launches]
    assert keys[0] != keys[1] == keys[2]


def test_the_sdk_s_options_all_count() -> None:
    """SES-133: each field alone, also one that a newer SDK adds."""
    base = Launch(options=ClaudeAgentOptions())
    in_settings = {"model", "permission_mode", "system_prompt"}
    for name in ClaudeAgentOptions.__dataclass_fields__.keys() - in_settings - {"cwd", "env"}:
        options = replace(ClaudeAgentOptions(), **{name: object()})
        assert identity(options) != identity(base.options), name


def test_a_server_object_stays_itself() -> None:
    """SES-133."""
    server = create_sdk_mcp_server("a", tools=[])
    copy = owned({"a": server})
    assert copy["a"] is not server and copy["a"]["instance"] is server["instance"]
    frozen: Mapping[str, object] = MappingProxyType({"a": server})
    assert identity(owned(frozen)) == identity(copy)


@dataclass
class _Recorder:
    """A changing object."""

    texts: list[str] = field(default_factory=list[str])

    def __call__(self, text: str) -> None:
        self.texts.append(text)


def test_an_object_that_can_be_written_to_is_not_copied() -> None:
    """SES-133."""
    recorder = _Recorder()
    launch = Launch(options=ClaudeAgentOptions(stderr=recorder))
    assert launch.options.stderr is recorder
