"""Run all cases, each in a Restate handler, on the server in `RESTATE_INGRESS`; print the results as JSON."""

import asyncio
import json
import os
import socket
from dataclasses import replace
from typing import Any

import httpx2
from cases import CASES, make_agent, recorder, run_case
from hypercorn.asyncio import serve  # pyright: ignore[reportUnknownVariableType]  # untyped in part
from hypercorn.config import Config
from restate import Context, RunOptions, Service, app
from restate.ext.pydantic import RestateAgent

cases = Service("cases")


@cases.handler()
async def run(_context: Context, arguments: dict[str, Any]) -> Any:
    """Run a case."""
    case = CASES[arguments["name"]]
    agent = RestateAgent(
        make_agent(replace(case, by_id=False)),  # Restate refuses ids
        event_stream_handler=recorder(case.name) if arguments["streamed"] else None,
        run_options=RunOptions[Any](max_attempts=1),
    )
    return await run_case(agent, case)


async def main() -> None:
    """Run them, plain and streamed."""
    outcomes: dict[str, Any] = {}
    address = os.environ["WORKER_ADDRESS"]
    host, _, port = address.rpartition(":")
    config = Config.from_mapping(bind=[f"fd://{socket.create_server((host, int(port))).detach()}"])
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group, httpx2.AsyncClient(timeout=None) as http:
        group.create_task(serve(app([cases]), config, shutdown_trigger=stop.wait))
        worker = {"uri": f"http://{address}"}
        (await http.post(f"{os.environ['RESTATE_ADMIN']}/deployments", json=worker)).raise_for_status()
        for name in CASES:
            for streamed, key in ((False, name), (True, f"{name}-streamed")):
                arguments = {"name": name, "streamed": streamed}
                response = await http.post(f"{os.environ['RESTATE_INGRESS']}/cases/run", json=arguments)
                outcomes[key] = response.json()
        stop.set()
    print(json.dumps(outcomes))


if __name__ == "__main__":
    asyncio.run(main())
