"""Gradio's chat page for servers of OpenAI's form, used as its browser page uses it."""

import os

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"

import abilities
import gradio
from abilities import MODEL, TOKEN, URL
from gradio_client import Client

page = gradio.load_chat(f"{URL}/v1", model=MODEL, token=TOKEN)
_, address, _ = page.launch(prevent_thread_lock=True, server_name="127.0.0.1", quiet=True)


def growing(prompt: str) -> list[str]:
    """Return the texts that a page shows one after the other, in a conversation of its own."""
    job = Client(address, verbose=False).submit({"text": prompt, "files": []}, api_name="/open_api_stream")
    last = job.result(timeout=60)
    return [*job.outputs(), last]


def stream() -> list[str]:
    texts = growing(abilities.HELLO)
    return [text.removeprefix(before) for before, text in zip(["", *texts], texts, strict=False)]


abilities.report(lambda prompt: growing(prompt)[-1], "gradio", "openai", stream=stream, errors=None)
page.close()
