"""The example notebook runs in a Jupyter kernel, and the page about Jupyter shows its cells."""

import asyncio
import re
from pathlib import Path
from typing import Any, cast

import nbformat
import pytest
from nbclient import NotebookClient

from cc_loopback import LoopbackServer

pytestmark = pytest.mark.worlds

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "how-to" / "jupyter.md").read_text("utf-8")


def read_notebook() -> Any:
    return cast("Any", nbformat.read(ROOT / "examples" / "notebook.ipynb", as_version=4))  # pyright: ignore[reportUnknownMemberType]


def run_cells(notebook: Any, loopback: LoopbackServer, folder: Path, *, allow_errors: bool = False) -> list[Any]:
    """Run the code cells; return their outputs, without those of cells that have none."""
    with pytest.MonkeyPatch.context() as environment:
        for name, value in loopback.env().items():
            environment.setenv(name, value)
        client = NotebookClient(
            notebook, timeout=100, allow_errors=allow_errors, resources={"metadata": {"path": str(folder)}}
        )
        # Not `execute()`, which leaves an event loop open.
        asyncio.run(client.async_execute())  # pyright: ignore[reportUnknownMemberType]
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def test_the_notebook_runs_in_a_kernel(loopback: LoopbackServer, tmp_path: Path) -> None:
    """MODEL-113: without a warning, although the kernel asks programs for colors."""
    outputs = run_cells(read_notebook(), loopback, tmp_path)
    assert [output.name for output in outputs] == ["stdout"] * len(outputs)
    texts = [output.text for output in outputs if output.text.strip()]  # a line's end may come by itself
    # The loopback model calls the tool in each run, and a text ends a streamed run.
    assert [text.splitlines()[0] for text in texts] == [
        'You said: "What is the weather in Paris?".',
        'You said: "And in Rome?".',
        "I will call weather.",
        'You said: "What is the capital of France?".',
    ]
    assert [len(body["messages"]) for body in loopback.requests] == [1, 3, 5, 7, 1, 1, 3]


def test_the_page_shows_cells_of_the_notebook() -> None:
    """MODEL-113"""
    cells = [cell.source for cell in read_notebook().cells]
    blocks = re.findall(r"```python\n(.*?)\n```", PAGE, flags=re.DOTALL)
    assert len(blocks) == 3
    assert [block for block in blocks if block not in cells] == []


def test_the_notebook_is_stored_without_outputs() -> None:
    code = [cell for cell in read_notebook().cells if cell.cell_type == "code"]
    assert [(cell.outputs, cell.execution_count) for cell in code] == [([], None)] * len(code)
