"""Run all cases without an engine; print the results as JSON."""

import asyncio
import json
from typing import Any

from cases import CASES, make_agent, recorder, run_case


async def main() -> None:
    """Run them, plain and streamed."""
    outcomes: dict[str, Any] = {}
    for case in CASES.values():
        outcomes[case.name] = await run_case(make_agent(case), case)
        outcomes[f"{case.name}-streamed"] = await run_case(make_agent(case), case, recorder(case.name))
    print(json.dumps(outcomes))


if __name__ == "__main__":
    asyncio.run(main())
