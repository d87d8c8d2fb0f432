// The TypeScript client in every mode it has: one line of JSON per mode. `node clients.mjs URL`
const root = '../../tools/node/node_modules/@modelcontextprotocol/client/dist/index.mjs';
const { Client, StreamableHTTPClientTransport } = await import(new URL(root, import.meta.url));
const url = new URL(process.argv[2]);
const modes = {
  legacy: {},
  'legacy, asks': { capabilities: { elicitation: {} } },
  auto: { versionNegotiation: { mode: 'auto' } },
  'auto, asks': { versionNegotiation: { mode: 'auto' }, capabilities: { elicitation: { form: {} } } },
  pinned: { versionNegotiation: { mode: { pin: '2026-07-28' } } },
};
for (const [mode, options] of Object.entries(modes)) {
  const client = new Client({ name: 'trial', version: '1' }, options);
  let asked = 0;
  if (options.capabilities) {
    client.setRequestHandler('elicitation/create', async () => {
      asked += 1;
      return { action: 'accept', content: { confirm: true } };
    });
  }
  await client.connect(new StreamableHTTPClientTransport(url));
  const { tools } = await client.listTools();
  const written = await client.callTool({ name: 'create_note', arguments: { name: mode.replace(', ', '-') } });
  const removed = await client.callTool({ name: 'delete_note', arguments: { name: 'trial' } });
  const refused = await client.callTool({ name: 'get_note', arguments: { name: '' } });
  let steps = 0;
  await client.callTool({ name: 'count_slowly', arguments: { steps: 2 } }, { onprogress: () => (steps += 1) });
  const { contents } = await client.readResource({ uri: 'connectivity://plans' });
  const { messages } = await client.getPrompt({ name: 'choose_plan', arguments: { country: 'NO', days: '3' } });
  const version = client.getNegotiatedProtocolVersion();
  const seen = { tools: tools.length, writes: written.structuredContent.writes, removed: !removed.isError, refused: refused.isError };
  console.log(JSON.stringify({ mode, version, asked, ...seen, steps, contents: contents.length, messages: messages.length }));
  await client.close();
}
