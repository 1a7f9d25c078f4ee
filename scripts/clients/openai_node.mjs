// OpenAI's client for Node: chat completions, and responses for the stream.
import { constants, load, report, weather } from "./program.mjs";

const { OpenAI } = await load("openai");
const connect = (apiKey = process.env.ANTHROPIC_API_KEY) =>
  new OpenAI({ apiKey, baseURL: `${process.env.ANTHROPIC_BASE_URL}/v1` });
const openai = connect();

const request = (content) => ({ model: constants.MODEL, messages: [{ role: "user", content }] });
const textOf = (completion) => completion.choices[0].message.content;
const ask = async (content, apiKey) => textOf(await connect(apiKey).chat.completions.create(request(content)));

await report(ask, ["openai"], {
  async stream() {
    const pieces = [];
    const stream = await openai.responses.create({ model: constants.MODEL, input: constants.HELLO, stream: true });
    for await (const event of stream) if (event.type === "response.output_text.delta") pieces.push(event.delta);
    return pieces;
  },

  async tools() {
    const tools = [{ type: "function", function: { name: "weather", parameters: constants.WEATHER_SCHEMA } }];
    const body = { ...request(constants.WEATHER), tools };
    const { message } = (await openai.chat.completions.create(body)).choices[0];
    const [call] = message.tool_calls;
    const content = weather(JSON.parse(call.function.arguments));
    body.messages.push(message, { role: "tool", tool_call_id: call.id, content });
    return textOf(await openai.chat.completions.create(body));
  },

  async structured() {
    const json_schema = { name: "city", strict: true, schema: constants.CITY_SCHEMA };
    const response_format = { type: "json_schema", json_schema };
    return JSON.parse(textOf(await openai.chat.completions.create({ ...request(constants.CITY), response_format })));
  },

  images() {
    return ask(constants.CHAT_IMAGE);
  },
});
