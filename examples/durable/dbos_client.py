"""A client for DBOS, as in a web application; it needs neither the agent nor Claude Code.

python dbos_client.py ask ID QUESTION      submit a question
python dbos_client.py pending ID           wait until an approval is needed, and print the calls
python dbos_client.py decide ID yes|no     approve or deny it
python dbos_client.py answer ID            wait for the answer, and print it
python dbos_client.py take-over NAME       give a dead worker's unfinished work to the others
"""

import os
import sys
from typing import cast

from dbos import DBOSClient, WorkflowHandle


def main(command: str, name: str, *rest: str) -> None:
    """Run a command."""
    client = DBOSClient(system_database_url=os.environ.get("DATABASE", "sqlite:///support.sqlite"))
    match command, rest:
        case "ask", [text]:
            client.enqueue({"queue_name": "questions", "workflow_name": "answer", "workflow_id": name}, text)
        case "pending", []:
            calls = cast("list[str] | None", client.get_event(name, "to approve", timeout_seconds=300))
            if calls is None:
                raise TimeoutError("nothing is to be approved")
            print(*calls, sep="\n")
        case "decide", ["yes" | "no" as decision]:
            client.send(name, decision == "yes", topic="approval")
        case "answer", []:
            question: WorkflowHandle[str] = client.retrieve_workflow(name)
            print(question.get_result())
        case "take-over", []:
            begun = client.list_workflows(executor_id=name, status="PENDING")
            client.resume_workflows([workflow.workflow_id for workflow in begun])
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
