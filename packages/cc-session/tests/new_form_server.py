"""An MCP server over stdio whose tool `order` asks for a size in MCP's new protocol. Run by a test."""

from typing import Annotated

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel


class Order(BaseModel):
    size: int


async def ask() -> Elicit[Order]:
    return Elicit("Which size?", Order)


server = MCPServer("form")


@server.tool()
async def order(order: Annotated[Order, Resolve(ask)]) -> str:
    return f"size {order.size}"


server.run("stdio")
