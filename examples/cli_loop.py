from pydantic_ai import Agent, RunContext

from cc_model import ClaudeCodeModel

model = ClaudeCodeModel("sonnet")
agent = Agent(model, deps_type=str)


@agent.tool
def weather(ctx: RunContext[str], city: str) -> str:
    """The weather in a city."""
    return f"{ctx.deps} in {city}"


model.set_agent_toolsets(agent.toolsets)
print(agent.run_sync("What is the weather in Paris?", deps="sunny").output)
