// The official client for Node.
import { constants, load, report, weather } from "./program.mjs";

const { Anthropic } = await load("@anthropic-ai/sdk");
const claude = new Anthropic();

const request = (content) => ({ model: constants.MODEL, max_tokens: 100, messages: [{ role: "user", content }] });
const textOf = (message) => message.content[0].text;
const ask = async (content, apiKey) => textOf(await new Anthropic({ apiKey }).messages.create(request(content)));

await report(ask, ["@anthropic-ai/sdk"], {
  async stream() {
    const pieces = [];
    const stream = claude.messages.stream(request(constants.HELLO)).on("text", (text) => pieces.push(text));
    await stream.finalMessage();
    return pieces;
  },

  async tools() {
    const tools = [{ name: "weather", input_schema: constants.WEATHER_SCHEMA }];
    const body = { ...request(constants.WEATHER), tools };
    const answer = await claude.messages.create(body);
    const call = answer.content.find((block) => block.type === "tool_use");
    const result = { type: "tool_result", tool_use_id: call.id, content: weather(call.input) };
    body.messages.push({ role: "assistant", content: answer.content }, { role: "user", content: [result] });
    return textOf(await claude.messages.create(body));
  },

  async structured() {
    const format = { type: "json_schema", schema: constants.CITY_SCHEMA };
    return JSON.parse(textOf(await claude.messages.create({ ...request(constants.CITY), output_config: { format } })));
  },

  images() {
    const source = { type: "base64", media_type: "image/png", data: constants.PNG_BASE64 };
    return ask([{ type: "image", source }, { type: "text", text: constants.LOOK }]);
  },
});
