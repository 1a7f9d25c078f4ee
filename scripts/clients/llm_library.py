"""`llm`, with a model of OpenAI's form in its configuration, as docs/how-to/other-clients.md has it."""

import json
import os
import tempfile
from pathlib import Path

FOLDER = Path(tempfile.mkdtemp(dir=Path.cwd()))
os.environ["LLM_USER_PATH"] = str(FOLDER)

import abilities  # noqa: E402
import llm  # noqa: E402
from abilities import MODEL, TOKEN, URL, weather  # noqa: E402

NAME = "claude-code"
FEATURES = {"supports_schema": True, "supports_tools": True, "vision": True}
SETTINGS = {"model_id": NAME, "model_name": MODEL, "api_base": f"{URL}/v1", "api_key_name": NAME, **FEATURES}
(FOLDER / "extra-openai-models.yaml").write_text(json.dumps([SETTINGS]), "utf-8")  # JSON is YAML
model = llm.get_model(NAME)


def ask(prompt: str, token: str = TOKEN) -> str:
    return model.prompt(prompt, key=token, stream=False).text()


abilities.report(
    ask,
    "llm",
    "openai",
    stream=lambda: list(model.prompt(abilities.HELLO, key=TOKEN, stream=True)),
    tools=lambda: model.chain(abilities.WEATHER, tools=[weather], key=TOKEN, stream=False).text(),
    structured=lambda: json.loads(
        model.prompt(abilities.CITY, schema=abilities.CITY_SCHEMA, key=TOKEN, stream=False).text()
    ),
    images=lambda: model.prompt(
        abilities.LOOK, attachments=[llm.Attachment(content=abilities.PNG)], key=TOKEN, stream=False
    ).text(),
)
