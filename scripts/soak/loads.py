"""Cases with a heavy load: long answers, many tools, long histories."""

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.tools import Tool

from .answers import HUGE_CHARACTERS, HUGELY, LOOK, SLOWLY
from .work import Case, Kind, WrongAnswerError

TOOLS = 1_000
HISTORY_TOKENS = 100_000
_CHARACTERS_PER_TOKEN = 4
_HISTORY_MESSAGES = 40


async def slow(case: Case) -> None:
    """An answer that takes seconds to begin."""
    case.check((await case.ask(Agent(case.model), f"Find {case.mark} {SLOWLY}.")).output)


async def huge(case: Case) -> None:
    """An answer with ten million characters."""
    output = (await case.ask(Agent(case.model), f"Find {case.mark} {HUGELY}.")).output
    if len(output) < HUGE_CHARACTERS:
        raise WrongAnswerError(f"{case.mark} got {len(output)} characters of {HUGE_CHARACTERS}")
    case.check(output)


async def many_tools(case: Case) -> None:
    """A thousand tools; the model calls a single tool."""

    async def look(mark: str) -> str:
        """Look."""
        return f"saw {mark}"

    async def other(mark: str, words: list[str], limit: int = 10) -> str:
        """Never called."""
        return f"{mark} {words} {limit}"

    names = [f"tool_{number}" for number in range(TOOLS - 1)]
    tools: list[Tool[object]] = [Tool(look, name=LOOK), *(Tool(other, name=name) for name in names)]
    agent: Agent[object, str] = Agent(case.model, tools=tools)
    case.check((await case.ask(agent, f"Find {case.mark}.")).output, has_looked=True)


async def long_history(case: Case) -> None:
    """A prompt after a conversation with a hundred thousand tokens."""
    size = HISTORY_TOKENS * _CHARACTERS_PER_TOKEN // _HISTORY_MESSAGES
    text = (f"{case.mark} " + "and so on " * (size // 10))[:size]
    history: list[ModelMessage] = []
    for _ in range(_HISTORY_MESSAGES // 2):
        history += [ModelRequest([UserPromptPart(text)]), ModelResponse([TextPart(text)])]
    case.check((await case.ask(Agent(case.model), f"Find {case.mark}.", message_history=history)).output)


HEAVY: dict[str, Kind] = {"slow": slow, "huge": huge, "tools": many_tools, "history": long_history}
"""Cases that run occasionally."""
