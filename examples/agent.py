from pydantic_ai import Agent, RunContext

from cc_model import claude_code

agent = Agent("claude-code:sonnet", capabilities=[claude_code()], deps_type=str)


@agent.tool
def weather(ctx: RunContext[str], city: str) -> str:
    """The weather in a city."""
    return f"{ctx.deps} in {city}"


print(agent.run_sync("What is the weather in Paris?", deps="sunny").output)
