// Vercel's AI SDK with its provider for Anthropic.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

// Installed in the working folder, not beside this file.
const require = createRequire(path.join(process.cwd(), "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { Output, generateText, isStepCount, jsonSchema, stepCountIs, streamText, tool } = await load("ai");
const { createAnthropic } = await load("@ai-sdk/anthropic");
const constants = JSON.parse(process.env.CLIENT_CONSTANTS);

const model = (apiKey = process.env.ANTHROPIC_API_KEY) =>
  createAnthropic({ baseURL: `${process.env.ANTHROPIC_BASE_URL}/v1`, apiKey })(constants.MODEL);
const ask = async (prompt, options = {}) => (await generateText({ model: model(), prompt, ...options })).text;

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
  text: () => ask(constants.HELLO),

  async stream() {
    const pieces = [];
    for await (const piece of streamText({ model: model(), prompt: constants.HELLO }).textStream) pieces.push(piece);
    return pieces;
  },

  tools() {
    const inputSchema = jsonSchema(constants.WEATHER_SCHEMA);
    const weather = tool({ inputSchema, execute: ({ city }) => `sunny in ${city}` });
    return ask(constants.WEATHER, { tools: { weather }, stopWhen: (isStepCount ?? stepCountIs)(3) });
  },

  async structured() {
    const output = Output.object({ schema: jsonSchema(constants.CITY_SCHEMA) });
    return (await generateText({ model: model(), prompt: constants.CITY, output })).output;
  },

  images() {
    const file = { type: "file", mediaType: "image/png", data: constants.PNG_BASE64 };
    const messages = [{ role: "user", content: [{ type: "text", text: constants.LOOK }, file] }];
    return ask(undefined, { messages });
  },

  async errors() {
    await ask(constants.REFUSE);
    const refused = await failure(() => ask(constants.HELLO));
    const stranger = await failure(() => ask(constants.HELLO, { model: model(constants.WRONG_TOKEN) }));
    await ask(constants.OVERLOAD);
    return [refused, stranger, await ask(constants.HELLO)];
  },
};

const say = (ability, result) => console.log(JSON.stringify({ ability, ...result }));
const version = (name) => JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8")).version;
say("versions", { value: { ai: version("ai"), "@ai-sdk/anthropic": version("@ai-sdk/anthropic"), node: process.version } });
for (const [name, ability] of Object.entries(abilities)) {
  try {
    say(name, { value: await ability() });
  } catch (error) {
    say(name, { error: `${error.constructor.name}: ${error.message}` });
  }
}
