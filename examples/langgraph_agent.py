# LangGraph's own types are incomplete.
# pyright: basic

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from cc_langchain import ChatClaudeCode


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


model = ChatClaudeCode(model="claude-sonnet-5", max_tokens=1000).bind_tools([weather])


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
    state = agent.invoke({"messages": [HumanMessage(question)]}, {"configurable": {"thread_id": "travel"}})
    print(state["messages"][-1].text)
