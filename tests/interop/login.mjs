// Logs in as the official TypeScript client does it: prints where the person must go, reads where they were sent, then works and renews.
// usage: node login.mjs CLIENT_MODULE URL REDIRECT_URL
import { createInterface } from "node:readline";
const [, , module, url, redirectUrl] = process.argv;
const { Client, StreamableHTTPClientTransport } = await import(module);
const kept = {};
const authProvider = {
  redirectUrl,
  clientMetadata: { client_name: "interop", redirect_uris: [redirectUrl], token_endpoint_auth_method: "none" },
  state: () => "state-of-the-interop-test",
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  codeVerifier: () => kept.verifier,
  discoveryState: () => kept.discovered,
  saveDiscoveryState: (discovered) => void (kept.discovered = discovered),
  redirectToAuthorization: (to) => console.log(to.href),
};
const transport = () => new StreamableHTTPClientTransport(new URL(url), { authProvider });
const client = () => new Client({ name: "interop", version: "1.0.0" });
const first = transport();
await client().connect(first).then(
  () => process.exit(3), // nobody has allowed anything yet
  () => undefined,
);
const lines = createInterface({ input: process.stdin });
const { value: sentTo } = await lines[Symbol.asyncIterator]().next();
await first.finishAuth(new URL(sentTo).searchParams);
const connected = client();
await connected.connect(transport());
const { tools } = await connected.listTools();
const call = { name: "list_connectivity_plans", arguments: {} };
const called = await connected.callTool(call);
const before = kept.tokens;
kept.tokens = { ...kept.tokens, access_token: "not.good.anymore" };
const renewed = await connected.callTool(call);
console.log(
  JSON.stringify({
    tools: tools.map((tool) => tool.name),
    called: !called.isError,
    renewed: !renewed.isError && kept.tokens.refresh_token !== before.refresh_token,
  }),
);
await connected.close();
lines.close();
