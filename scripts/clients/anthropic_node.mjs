// The official client for Node.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

// Installed in the working folder, not beside this file.
const require = createRequire(path.join(process.cwd(), "package.json"));
const { Anthropic } = require("@anthropic-ai/sdk");
const given = JSON.parse(process.env.CLIENT_CONSTANTS);
const claude = new Anthropic();

const request = (content) => ({ model: given.MODEL, max_tokens: 100, messages: [{ role: "user", content }] });
const ask = async (content, client = claude) => (await client.messages.create(request(content))).content[0].text;

async function failure(work) {
  let value;
  try {
    value = await work();
  } catch (error) {
    return `${error.constructor.name}: ${error.message}`;
  }
  throw new Error(`no error, but ${value}`);
}

const abilities = {
  text: () => ask(given.HELLO),

  async stream() {
    const pieces = [];
    const stream = claude.messages.stream(request(given.HELLO)).on("text", (text) => pieces.push(text));
    await stream.finalMessage();
    return pieces;
  },

  async tools() {
    const asked = { ...request(given.WEATHER), tools: [{ name: "weather", input_schema: given.WEATHER_SCHEMA }] };
    const answer = await claude.messages.create(asked);
    const call = answer.content.find((block) => block.type === "tool_use");
    const result = { type: "tool_result", tool_use_id: call.id, content: `sunny in ${call.input.city}` };
    asked.messages.push({ role: "assistant", content: answer.content }, { role: "user", content: [result] });
    return (await claude.messages.create(asked)).content[0].text;
  },

  async structured() {
    const format = { type: "json_schema", schema: given.CITY_SCHEMA };
    const answer = await claude.messages.create({ ...request(given.CITY), output_config: { format } });
    return JSON.parse(answer.content[0].text);
  },

  images() {
    const source = { type: "base64", media_type: "image/png", data: given.PNG_BASE64 };
    return ask([{ type: "image", source }, { type: "text", text: given.LOOK }]);
  },

  async errors() {
    await ask(given.REFUSE);
    const refused = await failure(() => ask(given.HELLO));
    const stranger = await failure(() => ask(given.HELLO, new Anthropic({ apiKey: given.WRONG_TOKEN })));
    await ask(given.OVERLOAD);
    return [refused, stranger, await ask(given.HELLO)];
  },
};

const say = (ability, result) => console.log(JSON.stringify({ ability, ...result }));
const { version } = JSON.parse(readFileSync("node_modules/@anthropic-ai/sdk/package.json", "utf8"));
say("versions", { value: { "@anthropic-ai/sdk": version, node: process.version } });
for (const [name, ability] of Object.entries(abilities)) {
  try {
    say(name, { value: await ability() });
  } catch (error) {
    say(name, { error: `${error.constructor.name}: ${error.message}` });
  }
}
