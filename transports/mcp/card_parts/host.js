// The card's side of MCP Apps (protocol 2026-01-26): JSON-RPC with the host by postMessage. It asks nobody else for anything.
"use strict";
const host = { capabilities: {}, tool: "", arguments: null, pending: new Map(), asked: 0 };

function send(message) {
  parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
}

function ask(method, params) {
  const id = ++host.asked;
  send({ id, method, params });
  return new Promise((resolve, reject) => host.pending.set(id, { resolve, reject }));
}

function takeContext(context) {
  if (context?.toolInfo?.tool?.name) host.tool = context.toolInfo.tool.name;
  if (context?.theme === "light" || context?.theme === "dark") document.documentElement.style.colorScheme = context.theme;
  for (const [name, value] of Object.entries(context?.styles?.variables ?? {}))
    if (/^--[a-z0-9-]+$/.test(name) && typeof value === "string") document.documentElement.style.setProperty(name, value);
}

const heard = {
  "ui/notifications/tool-input": (params) => (host.arguments = params?.arguments ?? {}),
  "ui/notifications/tool-result": (params) => show(params ?? {}),
  "ui/notifications/tool-cancelled": () => showContent([paragraph("The call was stopped before it answered.")]),
  "ui/notifications/host-context-changed": takeContext,
};

addEventListener("message", ({ source, data }) => {
  if (source !== parent || data?.jsonrpc !== "2.0") return;
  if (data.method === undefined) {
    const waiting = host.pending.get(data.id);
    host.pending.delete(data.id);
    if (data.error) waiting?.reject(new Error(data.error.message));
    else waiting?.resolve(data.result);
  } else if (data.id === undefined) heard[data.method]?.(data.params);
  else if (data.method === "ping" || data.method === "ui/resource-teardown") send({ id: data.id, result: {} });
  else send({ id: data.id, error: { code: -32601, message: "Method not found" } });
});

async function meetHost(name) {
  const met = await ask("ui/initialize", {
    protocolVersion: "2026-01-26",
    appInfo: { name, version: "1.0.0" },
    appCapabilities: { availableDisplayModes: ["inline"] },
  });
  host.capabilities = met?.hostCapabilities ?? {};
  takeContext(met?.hostContext);
  send({ method: "ui/notifications/initialized", params: {} });
  new ResizeObserver(tellSize).observe(document.documentElement);
}

function tellSize() {
  const { width, height } = document.documentElement.getBoundingClientRect();
  send({ method: "ui/notifications/size-changed", params: { width: Math.ceil(width), height: Math.ceil(height) } });
}

function tellModel(text) {
  if (host.capabilities.updateModelContext) ask("ui/update-model-context", { content: [{ type: "text", text }] }).catch(() => {});
}

// Texts of others become text nodes alone: no markup of theirs is ever read.
function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

const paragraph = (text, kind = "") => element("p", text, kind ? { class: kind } : {});

function facts(rows) {
  const list = element("dl");
  for (const [name, value] of rows)
    if (value !== undefined && value !== null && value !== "") list.append(element("dt", name), element("dd", String(value)));
  return list;
}

function button(label, act, kind = "") {
  const made = element("button", label, { type: "button", ...(kind && { class: kind }) });
  made.addEventListener("click", act);
  return made;
}

function setHeading(text) {
  document.getElementById("heading").textContent = text;
}

function showContent(parts) {
  document.getElementById("content").replaceChildren(...parts);
}

function tell(text) {
  document.getElementById("news").textContent = text;
}

function texts(result) {
  return (result.content ?? []).filter((block) => block.type === "text").map((block) => block.text);
}

function readJson(text) {
  try {
    return JSON.parse(text.slice(text.lastIndexOf("\n") + 1)); // a question has a sentence before it
  } catch {
    return null;
  }
}

function dataText(bytes) {
  const mb = bytes / 1e6;
  const [figure, unit] = mb < 1000 ? [mb.toFixed(1), "MB"] : [(mb / 1000).toFixed(2), "GB"];
  return `${figure.replace(/\.?0+$/, "")} ${unit}`;
}

function momentText(value) {
  const moment = new Date(typeof value === "number" ? value * 1000 : /[Zz]|[+-]\d\d:?\d\d$/.test(value) ? value : `${value}Z`);
  return isNaN(moment) ? String(value) : `${moment.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

// Every tool may be asked back: its credential may need an approval, so each card can show a challenge.
function show(result) {
  const body = texts(result).map(readJson).find((found) => found && typeof found === "object") ?? null;
  if (result.isError && body?.approval) showApproval(body);
  else if (result.isError && body?.confirm_token) showConfirmation(body, result._meta?.["connectivity/tool"] ?? host.tool);
  else if (result.isError) showRefusal(body, texts(result));
  else showAnswer(result.structuredContent ?? body ?? {});
}

function showRefusal(body, said) {
  setHeading("Refused");
  showContent([paragraph(body?.error ?? said[0] ?? "The call was refused."), ...(body?.hint ? [paragraph(body.hint, "quiet")] : [])]);
}
