"""The CLI in a claude-agent-sdk wheel."""

import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from commands import CheckError
from commands import run as run_command
from workspace import find_uv


@asynccontextmanager
async def wheel(version: str) -> AsyncGenerator[tuple[Path, str]]:
    """Fetch an SDK version; yield the CLI and the SDK's version."""
    requirement = "claude-agent-sdk" if version == "newest" else f"claude-agent-sdk=={version}"
    with tempfile.TemporaryDirectory(prefix="check-cli-") as folder:
        install = ["pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", f"--target={folder}", requirement]
        # Outside the repository, where the pins would apply.
        await run_command([*find_uv(), *install], Path(folder))
        yield found_in(Path(folder))


def found_in(folder: Path) -> tuple[Path, str]:
    """Return the CLI and the version of an SDK that was installed into a folder."""
    [metadata] = folder.glob("claude_agent_sdk-*.dist-info")
    cli = folder / "claude_agent_sdk" / "_bundled" / "claude"
    if not cli.exists():
        raise CheckError(f"{metadata.name} brings no CLI for this platform")
    return cli, metadata.name.removeprefix("claude_agent_sdk-").removesuffix(".dist-info")
