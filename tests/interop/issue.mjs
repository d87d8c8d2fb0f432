// Lists the tools and issues one eSIM twice with the same key, as the official TypeScript client does it.
// usage: node issue.mjs CLIENT_MODULE URL API_KEY MODE   (MODE: legacy, auto, or a pinned protocol version)
const [, , module, url, key, mode] = process.argv;
const { Client, StreamableHTTPClientTransport } = await import(module);
const transport = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers: { Authorization: `Bearer ${key}` } },
});
const negotiation = mode === "legacy" || mode === "auto" ? { mode } : { mode: { pin: mode } };
const client = new Client({ name: "interop", version: "1.0.0" }, { versionNegotiation: negotiation });
await client.connect(transport);
const { tools } = await client.listTools();
const call = { name: "create_connectivity_intent", arguments: { plan: "test_eu_1gb", idempotency_key: `interop-${mode}` } };
const first = await client.callTool(call);
const second = await client.callTool(call);
console.log(
  JSON.stringify({
    tools: tools.map((tool) => tool.name),
    first: first.structuredContent,
    same: JSON.stringify(first.structuredContent) === JSON.stringify(second.structuredContent),
    refused: (await client.callTool({ name: "create_connectivity_intent", arguments: { plan: "nope" } })).isError,
  }),
);
await client.close();
