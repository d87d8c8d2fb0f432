// Reads an AsyncAPI document with the parser of its makers, and prints what that remarks on, as JSON.
// usage: node asyncapi.mjs MODULES FILE
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [, , modules, file] = process.argv;
const { Parser } = createRequire(`${modules}/`)("@asyncapi/parser");
const { document, diagnostics } = await new Parser().parse(readFileSync(file, "utf8"));
const remarks = diagnostics.map(({ code, severity, message, path }) => ({ code, severity, message, path: path.join("/") }));
const messages = document === undefined ? [] : document.allMessages().all().map((message) => message.name());
console.log(JSON.stringify({ remarks, messages: [...new Set(messages)] }));
