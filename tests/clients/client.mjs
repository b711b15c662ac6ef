// What an official client in TypeScript sees of `selfroute mcp`, as JSON.
// node client.mjs PACKAGE MODE ADDRESS-OR-COMMAND...   PACKAGE is sdk (1.x) or client (2.x), MODE legacy or auto.
import { createRequire } from "node:module";

const [name, mode, address, ...args] = process.argv.slice(2);
const require = createRequire(`${process.env.SELFROUTE_CLIENTS}/`);
const parts =
  name === "client"
    ? ["client", "client/stdio", "client"]
    : ["sdk/client/index.js", "sdk/client/stdio.js", "sdk/client/streamableHttp.js"];
const [{ Client }, { StdioClientTransport }, { StreamableHTTPClientTransport }] = parts.map((part) =>
  require(`@modelcontextprotocol/${part}`),
);
const headers = { authorization: `Bearer ${process.env.SELFROUTE_MCP_TOKEN}` };
const transport = address.startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(address), { requestInit: { headers } })
  : new StdioClientTransport({ command: address, args, env: process.env, stderr: "inherit" });
const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
await client.connect(transport);

const call = (tool, given, options) => {
  const params = { name: tool, arguments: given };
  return name === "client" ? client.callTool(params, options) : client.callTool(params, undefined, options);
};
const seen = { server: client.getServerVersion().name, instructions: client.getInstructions() };
seen.tools = (await client.listTools()).tools; // the client then holds results against their schemas
seen.resources = (await client.listResources()).resources;
for (const [key, tool, given] of [
  ["searched", "search", { query: "Who is the captain?" }],
  ["found", "find", { document: "crew.md", words: "captain" }],
  ["opened", "open", { document: "crew.md" }],
  ["missing", "open", { document: "moon.md" }],
])
  seen[key] = (await call(tool, given)).structuredContent;
const progress = [];
const onprogress = (one) => progress.push(one);
const patient = { timeout: 2500, resetTimeoutOnProgress: true, onprogress };
seen.slow = (await call("ask", { question: "Who is the captain? Be slow." }, patient)).structuredContent;
seen.progress = progress;
seen.failed = await call("ask", { question: "Who fails?" });
const leaving = new AbortController();
const left = call("ask", { question: "Who waits?" }, { signal: leaving.signal });
setTimeout(() => leaving.abort(), 2000);
seen.left = await left.then(() => "answered", String);
console.log(JSON.stringify(seen));
for await (const _ of process.stdin); // the model has to stop while the client is still there
process.exit();
