from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, ModelTimeoutError

from cc_model import ClaudeCodeModel, ClaudeCodeProvider

provider = ClaudeCodeProvider(pool=4)
model = ClaudeCodeModel("sonnet", provider=provider)


class Question(BaseModel):
    text: str


class City(BaseModel):
    name: str
    country: str


chat = Agent(model)
cities = Agent(model, output_type=City)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    async with provider:  # leaving it ends the processes
        await provider.warm()
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/city")
async def city(question: Question) -> City:
    return (await cities.run(question.text)).output


@app.post("/chat")
async def stream(question: Question) -> StreamingResponse:
    async def texts() -> AsyncIterator[str]:
        async with chat.run_stream(question.text) as result:
            async for text in result.stream_text(delta=True):
                yield text

    return StreamingResponse(texts(), media_type="text/plain")


@app.exception_handler(ModelAPIError)
async def model_error(request: Request, error: Exception) -> JSONResponse:
    is_refused = isinstance(error, ModelHTTPError) and error.status_code in (429, 529)
    is_busy = is_refused or isinstance(error, ModelTimeoutError)
    return JSONResponse({"error": type(error).__name__}, 503 if is_busy else 502)
