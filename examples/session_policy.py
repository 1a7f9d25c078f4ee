import asyncio
import os
import tempfile
from dataclasses import replace
from typing import Any

from claude_agent_sdk import PermissionResultAllow, PermissionResultDeny, ToolPermissionContext

from cc_session import Policy, Rule, Session, sealed_options


async def ask(
    tool: str, input: dict[str, Any], context: ToolPermissionContext
) -> PermissionResultAllow | PermissionResultDeny:
    """Decide about a tool call; a person could be asked here, this function allows only `ls`."""
    if input.get("command", "").split()[:1] == ["ls"]:
        return PermissionResultAllow()
    return PermissionResultDeny(message="Only ls, please.")


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        policy = Policy.workspace_write(folder, shell="ask", ask=ask).with_rules(
            Rule("Bash", "deny", when=lambda input: input.get("run_in_background"), reason="Not in the background."),
        )
        tools = ["Read", "Write", "Bash"]
        options = replace(sealed_options(cwd=folder), tools=tools, max_turns=None, permission_mode="bypassPermissions")
        async with await Session.open(options, policy=policy) as session:
            print((await session.run("Write a haiku to haiku.txt, and list the folder.")).text)
        print(*os.listdir(folder))


asyncio.run(main())
