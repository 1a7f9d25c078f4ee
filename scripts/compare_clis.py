"""Show what a new pair of claude-agent-sdk and CLI changes for this project, as a Markdown page for a maintainer.

    uv run scripts/compare_clis.py [OLD] [NEW]

OLD is the pinned version if left out, NEW the newest. Control messages, options and environment variables come from the
CLI's program text; hook events, tools, requests with each kind of login, and the texts of failures from runs against a
loopback API; options and names of the SDK from its wheel. Exits with 1 if there is a difference. Takes a minute, and
downloads up to 160 MB for each version.
"""

import argparse
import asyncio
import json
import mmap
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, SystemMessage

from cc_loopback import Login, LoopbackServer
from cc_model import ClaudeCodeProvider
from cc_session import Session, sealed_options
from cc_session.process.private_folder import OF_A_HOST
from commands import finish, run, wheel
from workspace import ROOT, markdown_table, workspace_pins

sys.path.append(str(ROOT / "integration-tests" / "support"))

from api_script import call, thought

Facts = dict[str, dict[str, str]]
"""For each subject the names, with the values if they have some."""

LOGINS: tuple[Login, ...] = ("api-key", "oauth", "vertex", "bedrock")
STATUSES = (400, 401, 403, 404, 413, 429, 500, 529)
VARIABLES = "environment variables"
IN_THE_PROGRAM = {
    "control messages and events": rb'subtype(?::[\w$]+\(|===?)"(\w+)"',
    "options": rb'\.(?:option|addOption)\((?:new [\w$]+\()?"(?:-\w, ?)?(--[a-z0-9-]+)',
    VARIABLES: (rb"\b(?:process\.env\.|[\w$]{1,3}\.(?=CLAUDE|ANTHROPIC_|DISABLE_|ENABLE_))([A-Z][A-Z0-9_]{3,})\b"),
}
# Prints the SDK's names: options with types, hook events, exports.
OF_THE_SDK = """
import dataclasses, json, typing, claude_agent_sdk as sdk, claude_agent_sdk.types as types
options = {field.name: str(field.type) for field in dataclasses.fields(sdk.ClaudeAgentOptions)}
events = [event for part in typing.get_args(types.HookEvent) for event in (typing.get_args(part) or [part])]
names = {"hook events": dict.fromkeys(events, ""), "names": dict.fromkeys(sdk.__all__, "")}
print(json.dumps({"options": options, **names}))
"""
# Values that differ in each run, or name the version.
VARYING = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{64}\b|(?:req|msg|toolu)_\w+|/tmp/[\w./-]+|127\.0\.0\.1:\d+"
    r"|cc_version=[\w.]+|\bcch=\w+|claude-cli/[\w.]+|agent-sdk/[\w.]+|\d{4}-\d\d-\d\d"
)
WITHOUT_MEANING = {
    "content-length",
    "host",
    "traceparent",
    "x-stainless-timeout",
    "date",
    "x-amz-date",
    "authorization",
}
LONGEST = 160


def in_the_program(cli: Path) -> Facts:
    """Return the names in the CLI's program text."""
    with cli.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as program:
        found = {subject: {*re.findall(pattern, program)} for subject, pattern in IN_THE_PROGRAM.items()}
    return {
        subject: {name: treatment(name) if subject == VARIABLES else "" for name in map(bytes.decode, names)}
        for subject, names in found.items()
    }


def treatment(variable: str) -> str:
    """Return what happens to a variable of this process in a sealed one (`docs/reference/environment.md`)."""
    if variable in sealed_options().env:
        return "set"
    return "cleared" if OF_A_HOST.match(variable) else "passed"


async def of_the_sdk(folder: Path) -> Facts:
    """Return the names in an SDK that is installed in a folder, with this environment's other packages."""
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n{OF_THE_SDK}"
    found: Facts = json.loads(await run([sys.executable, "-c", code], folder))
    return {f"SDK: {subject}": names for subject, names in found.items()}


def flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the paths in a JSON value, with the values, without the parts that vary."""
    match value:
        case {**fields} if fields:
            for name, item in fields.items():
                yield from flat(item, f"{path}.{name}")
        case [*items] if items:
            for number, item in enumerate(items):
                yield from flat(item, f"{path}[{number}]")
        case _:
            yield path, VARYING.sub("…", value if isinstance(value, str) else json.dumps(value))


async def requests(cli: Path) -> Facts:
    """Return the parts of a request that the default road sends, for each login."""
    found: Facts = {}
    for login in LOGINS:
        with LoopbackServer() as api:
            async with ClaudeCodeProvider(cli_path=cli, env=api.env(login), max_retries=0, pool=1) as provider:
                message: Any = {"role": "user", "content": "Hello."}
                await provider.client.messages.create(model="claude-sonnet-5", max_tokens=100, messages=[message])
            sent = api.calls[-1]
            headers = {name: value for name, value in sent.headers.items() if name not in WITHOUT_MEANING}
            found[f"requests, {login}"] = dict(flat({"path": sent.path, "header": headers, "body": sent.body}))
    return found


async def of_a_session(cli: Path) -> Facts:
    """Return the hook events, the tools with their arguments, and the conversation that the CLI's own loop sends."""
    with LoopbackServer() as api, tempfile.TemporaryDirectory(prefix="compare-clis-") as folder:
        options = ClaudeAgentOptions(
            cli_path=cli, cwd=folder, env=api.env(), setting_sources=[], permission_mode="bypassPermissions"
        )
        api.script([[call("Bash", command="echo hi", description="Say it")], [thought("Hm.")], "Done."])
        async with await Session.open(options) as session:
            listing: Any = await session.control("get_hooks_listing")
            turn = await session.run("Hello.")
        last: Any = api.requests[-1]
    [init] = (message for message in turn.messages if isinstance(message, SystemMessage) and message.subtype == "init")
    arguments = {tool["name"]: ", ".join(sorted(tool["input_schema"].get("properties", {}))) for tool in last["tools"]}
    return {
        "hook events": {event["name"]: f"matcher: {event['supportsMatcher']}" for event in listing["eventCatalog"]},
        "tools": dict.fromkeys(init.data["tools"], "") | arguments,
        "requests, own loop": dict(flat({"messages": last["messages"]})),
    }


async def failures(cli: Path) -> Facts:
    """Return what the CLI prints and its exit code, for each status of the API, and for wrong starts."""
    texts: dict[str, str] = {}

    def ask(name: str, env: Mapping[str, str], *options: str) -> None:
        command = [str(cli), "-p", "Hello.", "--output-format", "json", "--no-session-persistence", *options]
        env = {"PATH": "/usr/bin:/bin", **env, "CLAUDE_CODE_MAX_RETRIES": "0", "DISABLE_AUTOUPDATER": "1"}
        done = subprocess.run(
            command, env=env, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
        )
        try:
            output = json.loads(done.stdout)["result"]
        except (ValueError, KeyError):
            output = done.stdout
        texts[name] = VARYING.sub("…", f"exit {done.returncode}: {output.strip()} {done.stderr.strip()}")

    with LoopbackServer() as api, tempfile.TemporaryDirectory(prefix="compare-clis-") as folder:
        for status in STATUSES:
            api.fail_next(status, times=3)
            await asyncio.to_thread(ask, f"status {status}", api.env(), "--bare")
            api.reset()
        await asyncio.to_thread(ask, "no such option", api.env(), "--no-such-option")
        await asyncio.to_thread(ask, "no such mode", api.env(), "--permission-mode=none")
        await asyncio.to_thread(ask, "no login", {**api.env(), "ANTHROPIC_API_KEY": ""})
        await asyncio.to_thread(ask, "no API", {**api.env(), "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}, "--bare")
    return {"texts of failures": texts}


async def facts(version: str) -> tuple[str, Facts]:
    """Return a version's name, and all that is compared."""
    async with wheel(version) as (cli, sdk):
        name = (await run([str(cli), "--version"], cli.parent)).split()[0]
        found = await asyncio.to_thread(in_the_program, cli) | await of_the_sdk(cli.parents[2])
        return f"{sdk} (CLI {name})", found | await of_a_session(cli) | await requests(cli) | await failures(cli)


def places(name: str, sources: Mapping[str, str]) -> str:
    """Return the source files that mention a name."""
    if not re.fullmatch(r"[\w-]{4,}", name):  # a part of a request, or a case
        return ""
    word = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
    return ", ".join(f"`{path}`" for path, text in sources.items() if word.search(text))


def shortened(value: str) -> str:
    return (value if len(value) <= LONGEST else f"{value[:LONGEST]}…").replace("\n", " ").replace("|", "\\|")


def page(old: str, new: str, before: Facts, after: Facts) -> list[str]:
    """Return the lines of the page; only the first if nothing differs."""
    folders = ROOT.glob("packages/*/src/**/*.py")
    sources = {str(path.relative_to(ROOT / "packages")): path.read_text("utf-8") for path in sorted(folders)}
    lines = [f"# claude-agent-sdk {old} and {new}"]
    for subject in {**before, **after}:
        rows = [*differences(before.get(subject, {}), after.get(subject, {}))]
        if rows:
            head = ("", "name", "before", "after", "mentioned in")
            table = markdown_table(head, *((*row, places(row[1].strip("`"), sources)) for row in rows))
            lines += ["", f"## {subject[0].upper()}{subject[1:]}: {len(rows)}", "", *table]
    return lines


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> Iterable[tuple[str, str, str, str]]:
    """Yield the kind of each difference, the name, and both values."""
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            kind = "new" if name not in before else "gone" if name not in after else "changed"
            yield kind, f"`{name}`", shortened(before.get(name, "")), shortened(after.get(name, ""))


async def work(old: str, new: str) -> list[str]:
    """Print the page; return a problem if there is a difference."""
    (old, before), (new, after) = await facts(old), await facts(new)
    lines = page(old, new, before, after)
    print(*lines, sep="\n")
    return [f"{new} differs from {old}"] if len(lines) > 1 else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    [pinned] = [pin.partition("==")[2] for pin in workspace_pins() if pin.startswith("claude-agent-sdk==")]
    parser.add_argument("old", nargs="?", metavar="OLD", default=pinned, help="a claude-agent-sdk version")
    parser.add_argument("new", nargs="?", metavar="NEW", default="newest", help="another one")
    arguments = parser.parse_args()
    return finish(work(arguments.old, arguments.new))


if __name__ == "__main__":
    sys.exit(main())
