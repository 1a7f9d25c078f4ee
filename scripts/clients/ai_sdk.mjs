// Vercel's AI SDK with its provider for Anthropic.
import { constants, load, report, weather } from "./program.mjs";

const { Output, generateText, isStepCount, jsonSchema, stepCountIs, streamText, tool } = await load("ai");
const { createAnthropic } = await load("@ai-sdk/anthropic");

const model = (apiKey = process.env.ANTHROPIC_API_KEY) =>
  createAnthropic({ baseURL: `${process.env.ANTHROPIC_BASE_URL}/v1`, apiKey })(constants.MODEL);
const generate = (options) => generateText({ model: model(), ...options });
const ask = async (prompt, token) => (await generate({ prompt, model: model(token) })).text;

await report(ask, ["ai", "@ai-sdk/anthropic"], {
  async stream() {
    const pieces = [];
    for await (const piece of streamText({ model: model(), prompt: constants.HELLO }).textStream) pieces.push(piece);
    return pieces;
  },

  async tools() {
    const tools = { weather: tool({ inputSchema: jsonSchema(constants.WEATHER_SCHEMA), execute: weather }) };
    return (await generate({ prompt: constants.WEATHER, tools, stopWhen: (isStepCount ?? stepCountIs)(3) })).text;
  },

  async structured() {
    const output = Output.object({ schema: jsonSchema(constants.CITY_SCHEMA) });
    return (await generate({ prompt: constants.CITY, output })).output;
  },

  async images() {
    const file = { type: "file", mediaType: "image/png", data: constants.PNG_BASE64 };
    const messages = [{ role: "user", content: [{ type: "text", text: constants.LOOK }, file] }];
    return (await generate({ messages })).text;
  },
});
