function lossList(losses) {
  const list = element("ul", undefined, { "aria-label": "What is lost or spent" });
  for (const loss of losses ?? []) {
    const row = element("li", undefined, { class: "lost" });
    row.append(element("h2", `${loss.name} (${loss.kind})`));
    row.append(facts(Object.entries(loss.details ?? {}).map(([name, value]) => [name.replaceAll("_", " "), value])));
    list.append(row);
  }
  return list.childElementCount ? [list] : [];
}

function showConfirmation(body, tool) {
  const able = Boolean(host.capabilities.serverTools && tool && host.arguments);
  const ends = new Date(Date.now() + body.expires_in_seconds * 1000);
  const yes = button("Do it", () => confirmCall(tool, body, buttons), "danger");
  const no = button("Cancel", () => endQuestion(buttons, "Cancelled. Nothing was done.", "The user declined in the card. Do not call the tool again."));
  const buttons = element("div", undefined, { class: "buttons" });
  buttons.append(...(able ? [yes, no] : [no]));
  setHeading("Not done yet");
  showContent([
    paragraph(body.message),
    ...lossList(body.losses),
    ...(able ? [] : [paragraph("This host cannot call the tool from a card. Tell the assistant whether to go on.")]),
    paragraph(`The question is open until ${ends.toLocaleTimeString()}.`, "quiet"),
    buttons,
  ]);
  host.expiry = setTimeout(() => endQuestion(buttons, "The question has expired. Nothing was done; ask again.", ""), body.expires_in_seconds * 1000);
}

function endQuestion(buttons, news, context) {
  clearTimeout(host.expiry);
  for (const each of buttons.children) each.disabled = true;
  tell(news);
  if (context) tellModel(context);
}

async function confirmCall(tool, body, buttons) {
  endQuestion(buttons, "Working …", "");
  const given = { ...host.arguments, confirm_token: body.confirm_token };
  try {
    const result = await ask("tools/call", { name: tool, arguments: given });
    tell("");
    if (result.isError) show(result);
    else showDone(body);
    tellModel(`The user confirmed in the card, and the call was made once. Its answer: ${texts(result)[0] ?? ""}`);
  } catch (error) {
    tell(`The host did not make the call: ${error.message}`);
  }
}

function showDone(body) {
  setHeading("Done");
  showContent([paragraph(body.message.replace(/^This will /, "Done: ")), ...lossList(body.losses)]);
}

// An approval is decided by a person on the page alone: the card shows what is asked and leads there.
function showApproval(body) {
  const { approval } = body;
  const money = (approval.money ?? []).map(({ amount, currency }) => `${(amount / 100).toFixed(2)} ${currency}`).join(", ");
  const page = URL.canParse(approval.page) ? new URL(approval.page) : null;
  const web = page !== null && ["https:", "http:"].includes(page.protocol);
  const able = Boolean(host.capabilities.openLinks && web);
  const open = button("Open the approval page", async () => {
    const opened = await ask("ui/open-link", { url: page.href }).catch(() => ({ isError: true }));
    tell(opened?.isError ? `The host did not open the page: ${page.href}` : "The page is open. It asks you to sign in.");
  });
  const buttons = element("div", undefined, { class: "buttons" });
  if (able) buttons.append(open);
  setHeading("Waits for an approval");
  showContent([
    paragraph(approval.sentence ?? body.message),
    ...lossList(body.losses ?? approval.losses),
    facts([
      ["Money", money],
      ["Open until", approval.expires === undefined ? "" : momentText(approval.expires)],
      ["Approval", approval.id],
      ...(web ? [["Page", page.href]] : []),
    ]),
    paragraph("It is decided on that page, by a person who has signed in. Nothing here decides it."),
    buttons,
  ]);
}
