import asyncio
import sys
from dataclasses import replace

from claude_agent_sdk import PreToolUseHookInput, UserPromptSubmitHookInput

from cc_session import HookResult, Session, command_hook, hook, sealed_options


@hook("PreToolUse", "Bash", timeout=5)
async def no_sudo(input: PreToolUseHookInput) -> HookResult:
    if "sudo" in input["tool_input"]["command"]:
        return HookResult.deny("There is no sudo here.")
    return HookResult.no_opinion()


@hook("UserPromptSubmit")
def say_where(input: UserPromptSubmitHookInput) -> HookResult:
    return HookResult(context=f"The working folder is {input['cwd']}.")


# A command hook gets the event on stdin; exit code 2 blocks, with stderr as the reason.
AUDIT = "import json, sys; sys.exit(2 if 'rm -rf' in json.load(sys.stdin)['tool_input']['command'] else 0)"
audit = command_hook("PreToolUse", [sys.executable, "-c", AUDIT], matcher="Bash")


async def main() -> None:
    options = replace(sealed_options(), tools=["Bash"], allowed_tools=["Bash"], max_turns=None)
    async with await Session.open(options, hooks=[no_sudo, say_where, audit]) as session:
        print((await session.run("Which day is it? Use the shell.")).text)


asyncio.run(main())
