// A walk through the service as a client from npm makes it: a list of tools, a refusal, a confirmation, an eSIM and the same eSIM again.
// usage: node walk.mjs MODULES URL API_KEY CLIENT...   (CLIENT: typescript-1, typescript-2-legacy, -auto or -2026-07-28, langchain)
import { pathToFileURL } from "node:url";

const [, , modules, url, key, ...chosen] = process.argv;
const load = (path) => import(pathToFileURL(`${modules}/${path}`));
const options = { requestInit: { headers: { Authorization: `Bearer ${key}` } } };

// Each client as the names of the tools, a way to call one, and a way to end. A call answers its texts, or is a refusal with them.
async function typescript(client, transport) {
  await client.connect(transport);
  const { tools } = await client.listTools(); // from here on the client holds answers to the output schemas
  const call = async (tool, args) => {
    const result = await client.callTool({ name: tool, arguments: args });
    const { isError = false, structuredContent: value } = result;
    return { refused: isError, texts: result.content.map((block) => block.text), value };
  };
  return { names: tools.map((tool) => tool.name), call, close: () => client.close() };
}

const clients = {
  "typescript-1": async () => {
    const { Client } = await load("@modelcontextprotocol/sdk/dist/esm/client/index.js");
    const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/dist/esm/client/streamableHttp.js");
    return typescript(new Client({ name: "walk", version: "1.0.0" }), new StreamableHTTPClientTransport(new URL(url), options));
  },
  "typescript-2-legacy": () => second({ mode: "legacy" }),
  "typescript-2-auto": () => second({ mode: "auto" }),
  "typescript-2-2026-07-28": () => second({ mode: { pin: "2026-07-28" } }),
  langchain: async () => {
    const { MultiServerMCPClient } = await load("@langchain/mcp-adapters/dist/index.js");
    const server = { transport: "http", url, headers: options.requestInit.headers };
    const client = new MultiServerMCPClient({ mcpServers: { connectivity: server }, throwOnLoadError: true });
    const tools = new Map((await client.getTools()).map((tool) => [tool.name, tool]));
    const call = async (tool, args) => {
      try {
        const { content } = await tools.get(tool).invoke({ type: "tool_call", id: "1", name: tool, args });
        const blocks = typeof content === "string" ? [JSON.parse(content)] : content; // one block alone comes as its JSON
        const texts = blocks.map((block) => block.text);
        return { refused: false, texts, value: JSON.parse(texts[0]) };
      } catch (error) {
        if (error.name !== "ToolException") throw error;
        return { refused: true, texts: [error.message.slice(error.message.search(/\{|Not done yet: /))] };
      }
    };
    return { names: [...tools.keys()], call, close: () => client.close() };
  },
};

async function second(versionNegotiation) {
  const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client/dist/index.mjs");
  const client = new Client({ name: "walk", version: "1.0.0" }, { versionNegotiation });
  return typescript(client, new StreamableHTTPClientTransport(new URL(url), options));
}

async function walk(name) {
  const { names, call, close } = await clients[name]();
  const refused = await call("get_connectivity_intent", { id: `cni_${"0".repeat(26)}` });
  // Null is what some clients send for an argument that they leave out. LangChain holds arguments to the schema itself, where null is none.
  const without = (...names) => (name === "langchain" ? {} : Object.fromEntries(names.map((each) => [each, null])));
  const { iccid } = (await call("list_subscribers", { limit: 1, fields: ["iccid"], ...without("q", "status") })).value.data[0];
  const message = { iccid, message: "Hello" };
  const challenge = await call("send_sms", message);
  const sent = await call("send_sms", { ...message, confirm_token: JSON.parse(challenge.texts[0].split("\n").at(-1)).confirm_token });
  const order = { plan: "test_eu_1gb", ...without("metadata"), idempotency_key: `walk-${name}` };
  const first = await call("create_connectivity_intent", order);
  const again = await call("create_connectivity_intent", order);
  await close();
  return { names, refused, challenge, sent, first, again };
}

const walks = {};
for (const name of chosen) {
  walks[name] = await walk(name).catch((error) => ({ failed: String(error.stack) }));
}
console.log(JSON.stringify(walks));
