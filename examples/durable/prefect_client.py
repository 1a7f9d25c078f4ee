"""A client for Prefect, as in a web application; it needs neither the agent nor Claude Code.

python prefect_client.py ask ID QUESTION      submit a question
python prefect_client.py pending ID           wait until an approval is needed
python prefect_client.py decide ID yes|no     approve or deny it
python prefect_client.py answer ID            wait for the answer, and print it
python prefect_client.py take-over ID         give a dead worker's question to the others
"""

import asyncio
import sys

from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterName
from prefect.client.schemas.objects import FlowRun
from prefect.deployments import arun_deployment
from prefect.flow_runs import aresume_flow_run
from prefect.states import Scheduled

_ENDS = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")


async def main(command: str, name: str, *rest: str) -> None:
    """Run a command."""
    async with get_client() as client:
        match command, rest:
            case "ask", [question]:
                await arun_deployment(
                    "answer/questions",
                    flow_run_name=name,
                    idempotency_key=name,
                    parameters={"question": question},
                    timeout=0,
                )
            case "pending", []:
                run = await _until(client, name, "PAUSED", *_ENDS)
                print(run.state_name)
            case "decide", ["yes" | "no" as decision]:
                await aresume_flow_run((await _find(client, name)).id, {"approved": decision == "yes"})
            case "answer", []:
                run = await _until(client, name, *_ENDS)
                assert run.state is not None
                print(await run.state.aresult())
            case "take-over", []:
                await client.set_flow_run_state((await _find(client, name)).id, Scheduled(), force=True)
            case _:
                sys.exit(__doc__)


async def _find(client: PrefectClient, name: str) -> FlowRun:
    [run] = await client.read_flow_runs(flow_run_filter=FlowRunFilter(name=FlowRunFilterName(any_=[name])))
    return run


async def _until(client: PrefectClient, name: str, *types: str) -> FlowRun:
    async with asyncio.timeout(300):
        while (run := await _find(client, name)).state_type not in types:  # noqa: ASYNC110  # there is no event for it
            await asyncio.sleep(0.5)
    return run


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
