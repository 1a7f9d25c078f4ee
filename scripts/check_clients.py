"""Test clients of the Messages API against the server, each in a separate environment.

    uv run scripts/check_clients.py [--write] [CLIENT ...]

Runs the programs in `scripts/clients` against `cc-server` on a loopback API, each with the newest
version. Prints a table; with --write, it also writes `docs/reference/clients.md`. Exits with 1 if a client fails.
"""

import argparse
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cc_loopback import LoopbackServer
from commands import CheckError, finish, run, temporary_folder
from workspace import ROOT, find_uv, markdown_table, write_table

sys.path.append(str(ROOT / "scripts" / "clients"))
sys.path.append(str(ROOT / "integration-tests" / "support"))

import abilities

from cli_logs import CLI
from messages_server import MessagesServer, serving

CLIENTS_FOLDER = ROOT / "scripts" / "clients"
PAGE = ROOT / "docs" / "reference" / "clients.md"
COLUMNS = ("text", "stream", "tools", "structured", "images", "errors")

SHELLS = ("Bash", "bash", "run_commands")
"""Names of coding agents' shell tools."""

ANSWER = "Good day to you."
PARIS = {"name": "Paris", "people": 2}
SUNNY = f"It is {abilities.weather('Paris')}."
PICTURE = f"A picture of type image/png with {len(abilities.PNG_BASE64)} characters."
REFUSAL = "This request was refused for the test."
"""The API's message in an error; a client shows it."""


@dataclass(frozen=True)
class Client:
    """A program in `scripts/clients` with requirements."""

    title: str
    program: str
    packages: tuple[str, ...] = ()
    note: str = ""
    """A remark for the page."""
    lacks: tuple[str, ...] = ()
    """Abilities that the client does not have, or that are not tried; the note says why."""
    npm: tuple[str, ...] = ()
    """npm packages."""

    @property
    def name(self) -> str:
        return self.program.partition(".")[0]


UNTRIED = ("stream", "structured", "images", "errors")

CLIENTS = (
    Client("curl", "curl.py"),
    Client("`claude` CLI", "claude_cli.py"),
    Client("`anthropic` for Python", "anthropic_python.py", ("anthropic",)),
    Client("`@anthropic-ai/sdk` for Node", "anthropic_node.mjs", npm=("@anthropic-ai/sdk",)),
    Client("Vercel's AI SDK", "ai_sdk.mjs", npm=("ai", "@ai-sdk/anthropic")),
    Client("pydantic-ai `AnthropicModel`", "pydantic_ai_anthropic.py", ("pydantic-ai-slim[anthropic]",)),
    Client("LangChain", "langchain_chat.py", ("langchain", "langchain-anthropic")),
    Client("LangGraph", "langgraph_graph.py", ("langgraph", "langchain-anthropic")),
    Client(
        "LlamaIndex", "llama_index_llm.py", ("llama-index-core", "llama-index-llms-anthropic", "anthropic<2"),
        "this version fails with `anthropic` 2, before it sends a request: install `anthropic<2`",
    ),
    Client(
        "instructor", "instructor_client.py", ("instructor[anthropic]",),
        "it has typed answers in the place of tools", ("tools",),
    ),
    Client("DSPy", "dspy_predict.py", ("dspy", "mcp"), "calls of tools need the package `mcp`"),
    Client(
        "LiteLLM", "litellm_library.py", ("litellm", "mcp", "tenacity"),
        "calls of tools need the package `mcp`, and `num_retries` needs `tenacity`",
    ),
    Client("`openai` for Python, chat completions", "openai_chat.py", ("openai",)),
    Client("`openai` for Python, responses", "openai_responses.py", ("openai",)),
    Client("`openai` for Node, both protocols", "openai_node.mjs", npm=("openai",)),
    Client("llm, chat completions", "llm_library.py", ("llm",)),
    Client(
        "Gradio, chat completions", "gradio_chat.py", ("gradio", "openai"),
        "a chat page, `gradio.load_chat()`; tried with an answer and a stream", ("tools", *UNTRIED[1:]),
    ),
    Client(
        "OpenCode, chat completions", "opencode_openai.py",
        note="as OpenCode, with the provider `@ai-sdk/openai-compatible`", lacks=UNTRIED, npm=("opencode-ai",),
    ),
    Client(
        "OpenCode", "opencode.py", note="a coding agent, tried with an answer and its own shell tool", lacks=UNTRIED,
        npm=("opencode-ai",),
    ),
    Client(
        "Cline", "cline.py", note="a coding agent, tried with an answer and its own shell tool", lacks=UNTRIED,
        npm=("cline",),
    ),
    Client(
        "Aider", "aider.py", ("aider-chat",),
        "it edits files by text, without tools; tried with an answer", ("tools", *UNTRIED),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """The results for a client, with a problem for each ability that failed."""

    client: Client
    versions: Mapping[str, str]
    problems: Mapping[str, str]

    def cells(self) -> list[str]:
        results = ["—" if name in self.client.lacks else "no" if name in self.problems else "yes" for name in COLUMNS]
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return [self.client.title, versions, *results]


def script(api: LoopbackServer) -> None:
    """Let the API answer the programs."""

    def respond(body: dict[str, Any]) -> Any:
        prompt = next(message["content"] for message in reversed(body["messages"]) if message["role"] == "user")
        blocks: list[Any] = [{"type": "text", "text": prompt}] if isinstance(prompt, str) else prompt
        text = "\n".join(block["text"] for block in blocks if block["type"] == "text")
        if refused := re.search(r"Refuse the next request with (\d+)\.", text):
            api.fail_next(int(refused[1]), message=REFUSAL, headers={"retry-after": "0"})
            return ANSWER
        if results := [block for block in blocks if block["type"] == "tool_result"]:
            is_weather = results[0]["tool_use_id"] in {f"toolu_{name}" for name in ("weather", *SHELLS)}
            content = results[0]["content"]
            text = content if isinstance(content, str) else "".join(block["text"] for block in content)
            weather = re.search(r"sunny in \w+", text)  # Cline has the output in JSON
            return f"It is {weather[0] if weather else text}." if is_weather else ANSWER
        for source in (block["source"] for block in blocks if block["type"] == "image"):
            picture = f"A picture of type {source['media_type']} with {len(source['data'])} characters."
            return reply(body, text, picture)
        return reply(body, text, None)

    api.respond = respond


def reply(body: dict[str, Any], text: str, picture: str | None) -> Any:
    """Return the answer to a prompt, in the form that the request asks for."""
    tools = {tool["name"]: tool for tool in body.get("tools", [])}
    choice = body.get("tool_choice", {})
    if "weather" in tools and abilities.WEATHER in text:
        return [call("weather", {"city": "Paris"})]
    for shell in {*SHELLS} & {*tools} if abilities.WEATHER in text else ():
        command = f"echo {abilities.weather('Paris')}"
        is_list = "commands" in tools[shell]["input_schema"]["properties"]
        arguments = {"commands": [command]} if is_list else {"command": command, "description": "weather"}
        return [call(shell, arguments)]
    if schema := body.get("output_config", {}).get("format", {}).get("schema"):
        return json.dumps(city(schema, picture))
    for name, tool in tools.items():
        if name == choice.get("name") or name == "StructuredOutput" or choice.get("type") == "any":
            return [call(name, city(tool["input_schema"], picture))]
    # The form for which DSPy asks in the prompt.
    if fields := re.findall(r"`\[\[ ## (\w+) ## \]\]`", text.rpartition("Respond with")[2]):
        values = {name: "" if name == "completed" else picture or ANSWER for name in fields}
        return "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in values.items())
    return picture or ANSWER


def call(name: str, arguments: object) -> dict[str, object]:
    return {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": arguments}


def city(schema: dict[str, Any], picture: str | None) -> dict[str, Any]:
    """Return the city as `schema` requires: alone, or in an object as the only field."""
    value = {**PARIS, "name": picture or PARIS["name"]}
    fields = schema["properties"]
    return value if "people" in fields else {next(iter(fields)): value}


def judge(ability: str, value: Any) -> str | None:
    match ability:
        case "text":
            good = value == ANSWER
        case "stream":
            whole = value[-1] == PARIS if isinstance(value[-1], dict) else "".join(value) == ANSWER
            good = len(value) > 1 and whole
        case "tools":
            good = value.startswith(SUNNY.rstrip("."))
        case "structured":
            good = value == PARIS
        case "images":
            good = value == PICTURE
        case _:
            refused, stranger, repeated = value
            good = REFUSAL in refused and re.search("token|API key", stranger) and repeated == ANSWER
    return None if good else f"the result is {json.dumps(value)}"


def read(client: Client, output: str) -> Row:
    versions: dict[str, str] = {}
    problems = {name: "the program did not try it" for name in COLUMNS if name not in client.lacks}
    for line in output.splitlines():
        if not line.startswith('{"ability"'):
            continue
        report = json.loads(line)
        name = report["ability"]
        if name == "versions":
            versions |= report["value"]
        elif problem := report.get("error") or judge(name, report["value"]):
            problems[name] = problem
        else:
            problems.pop(name, None)
    return Row(client, versions, problems)


async def command(client: Client, folder: Path) -> list[str]:
    """Return the command that runs a program; npm packages are installed first."""
    program = str(CLIENTS_FOLDER / client.program)
    if client.npm:
        await run(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *client.npm], folder)
    if program.endswith(".mjs"):
        return ["node", program]
    packages = [f"--with={package}" for package in client.packages]
    isolated = [*find_uv(), "run", "--quiet", "--isolated", "--no-project", f"--python={sys.executable}", "--upgrade"]
    return [*isolated, *packages, "python", program]


async def check(client: Client, api: LoopbackServer, server: MessagesServer) -> Row:
    api.reset()
    script(api)
    constants = {name: value for name, value in vars(abilities).items() if name.isupper() and name != "PNG"}
    env = {
        **server.env(),
        "CLIENT_CONSTANTS": json.dumps(constants),
        "CLAUDE_CLI": str(CLI),
        "CLAUDE_ENV": json.dumps(api.env()),  # with a private folder
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    # Outside the repository, where the pins would apply.
    with temporary_folder() as name:
        folder = Path(name)
        return read(client, await run(await command(client, folder), folder, env))


def table(rows: list[Row]) -> list[str]:
    lines = markdown_table(["client", "versions", *COLUMNS], *(row.cells() for row in rows))
    notes = [f"- {row.client.title}: {row.client.note}." for row in rows if row.client.note]
    return [*lines, *([""] if notes else []), *notes]


async def work(clients: list[Client], write: bool) -> list[str]:
    rows: list[Row] = []
    failed: list[str] = []
    with LoopbackServer() as api, serving(api) as server:
        for client in clients:
            try:
                row = await check(client, api, server)
            except CheckError as error:
                failed.append(f"{client.title}: {error}")
                continue
            rows.append(row)
            print(" | ".join(row.cells()), flush=True)
            failed += [f"{client.title}, {name}: {problem}" for name, problem in row.problems.items()]
    if write:
        write_table(PAGE, table(rows))
    return failed


def main() -> int:
    names = [client.name for client in CLIENTS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=f"{', '.join(names)} (default: all)")
    parser.add_argument("--write", action="store_true", help="write the documentation page; with all clients")
    arguments = parser.parse_args()
    if unknown := sorted({*arguments.clients} - {*names}):
        parser.error(f"unknown client: {', '.join(unknown)}")
    if arguments.write and arguments.clients:
        parser.error("the page has all clients: give none with --write")
    chosen = [client for client in CLIENTS if not arguments.clients or client.name in arguments.clients]
    return finish(work(chosen, arguments.write))


if __name__ == "__main__":
    sys.exit(main())
