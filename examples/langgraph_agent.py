from functools import cached_property

import httpx2
from anthropic import Anthropic, AsyncAnthropic
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from cc_messages import ClaudeCodeTransport

transport = ClaudeCodeTransport(pool=2)


class ChatClaudeCode(ChatAnthropic):
    @cached_property
    def _client(self) -> Anthropic:
        return Anthropic(api_key="not used", http_client=httpx2.Client(transport=transport))

    @cached_property
    def _async_client(self) -> AsyncAnthropic:
        return AsyncAnthropic(api_key="not used", http_client=httpx2.AsyncClient(transport=transport))


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


model = ChatClaudeCode(model_name="claude-sonnet-5", max_tokens_to_sample=1000).bind_tools([weather])


def ask(state: MessagesState) -> MessagesState:
    return {"messages": [model.invoke(state["messages"])]}


graph = StateGraph(MessagesState)
graph.add_node("model", ask)
graph.add_node("tools", ToolNode([weather]))
graph.add_edge(START, "model")
graph.add_conditional_edges("model", tools_condition)
graph.add_edge("tools", "model")
agent = graph.compile(checkpointer=InMemorySaver())

for question in ("What is the weather in Paris?", "And in Rome?"):
    state = agent.invoke({"messages": [("user", question)]}, {"configurable": {"thread_id": "travel"}})
    print(state["messages"][-1].text)
