// For the programs in this folder: constants, packages in the working folder, and `report()` as in abilities.py.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

// Packages are installed in the working folder, not beside this file.
const require = createRequire(path.join(process.cwd(), "package.json"));

export const constants = JSON.parse(process.env.CLIENT_CONSTANTS);
export const load = (name) => import(pathToFileURL(require.resolve(name)).href);
export const weather = ({ city }) => `sunny in ${city}`;

/** Print the packages' versions, and each ability's result. `ask` takes a prompt and a token, undefined for the right one. */
export async function report(ask, packages, abilities) {
  const version = (name) => JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8")).version;
  const versions = Object.fromEntries(packages.map((name) => [name, version(name)]));
  say("versions", { value: { ...versions, node: process.version } });
  const defaults = { text: () => ask(constants.HELLO), errors: () => errors(ask) };
  for (const [name, ability] of Object.entries({ ...defaults, ...abilities })) {
    try {
      say(name, { value: await ability() });
    } catch (error) {
      say(name, { error: `${error.constructor.name}: ${error.message}` });
    }
  }
}

async function errors(ask) {
  await ask(constants.REFUSE);
  const refused = await failure(() => ask(constants.HELLO));
  const stranger = await failure(() => ask(constants.HELLO, constants.WRONG_TOKEN));
  await ask(constants.OVERLOAD);
  return [refused, stranger, await ask(constants.HELLO)];
}

async function failure(work) {
  let value;
  try {
    value = await work();
  } catch (error) {
    return `${error.constructor.name}: ${error.message}`;
  }
  throw new Error(`no error, but ${value}`);
}

const say = (ability, result) => console.log(JSON.stringify({ ability, ...result }));
