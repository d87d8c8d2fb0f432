const PACKAGES_TOOL = "list_subscriber_packages";

function showAnswer(answer) {
  const found = answer.data ?? answer;
  if (Array.isArray(found)) showPackages(found);
  else if (found.first_cause) showDiagnosis(found);
  else showLine(found);
}

function showPackages(rows, before = []) {
  if (!before.length) setHeading(host.arguments?.iccid ? `Packages of ${host.arguments.iccid}` : "Packages");
  const list = element("ul", undefined, { "aria-label": "Packages" });
  for (const row of [...rows.filter(isOfUse), ...rows.filter((row) => !isOfUse(row))]) list.append(packageRow(row));
  showContent([...before, ...(rows.length ? [list] : [paragraph("The line has no package.")])]);
}

const isOfUse = (row) => !["expired", "exhausted"].includes(row.state);

function packageRow(row) {
  const name = row.packageTemplate?.prepaidpackagetemplatename ?? row.recurring?.templateName ?? "Package";
  const made = element("li");
  made.append(element("h2", `${name}: ${row.state ?? "unknown"}`));
  const held = row.pckdatabyte ?? 0;
  const used = Math.min(row.useddatabyte ?? 0, held);
  if (held > 0) {
    const label = `${dataText(used)} of ${dataText(held)} used`;
    made.append(element("progress", label, { max: held, value: used, "aria-label": `${name}: ${label}` }), paragraph(label, "quiet"));
  }
  made.append(facts([["Ends", row.tsexpirationutc ? momentText(row.tsexpirationutc) : "after its first use"]]));
  return made;
}

function showLine(line) {
  const parts = [
    facts([
      ["Status", line.currentStatus],
      ["Name", line.subscriberName],
      ["Number", line.msisdn],
      ["Account", line.account ?? line.accountId],
      ["Last seen", line.lastUsageDate ? momentText(line.lastUsageDate) : ""],
      ["Data allowed", line.allowedData === undefined ? "" : line.allowedData ? "yes" : "no"],
      ["SIM", line.sim?.status],
      ["Balance", line.balance === undefined ? "" : `${line.balance} EUR`],
    ]),
  ];
  setHeading(`Line ${line.iccid ?? host.arguments?.iccid ?? ""}`.trim());
  if (!line.iccid || !host.capabilities.serverTools) return showContent(parts);
  const reading = button("Show packages", async () => {
    reading.disabled = true;
    tell("Reading …");
    try {
      const result = await ask("tools/call", { name: PACKAGES_TOOL, arguments: { iccid: line.iccid } });
      tell("");
      if (result.isError) show(result);
      else showPackages(result.structuredContent?.data ?? [], parts);
    } catch (error) {
      tell(`The host did not make the call: ${error.message}`);
    }
  });
  const buttons = element("div", undefined, { class: "buttons" });
  buttons.append(reading);
  showContent([...parts, buttons]);
}

function showDiagnosis(found) {
  const { line } = found;
  setHeading(`Line ${found.iccid}: ${words(found.first_cause)}`);
  const list = element("ul", undefined, { "aria-label": "Causes, the one to mend first at the top" });
  for (const cause of found.causes ?? []) {
    const row = element("li");
    row.append(element("h2", words(cause.cause)));
    for (const step of cause.next_steps ?? []) row.append(paragraph(`${step.operation}: ${step.why}`, "quiet"));
    list.append(row);
  }
  const states = Object.entries(line.packages ?? {}).map(([state, count]) => `${count} ${state}`);
  const used = line.used_bytes ?? 0;
  const left = line.data_left ?? 0;
  const parts = [
    facts([
      ["Status", line.status],
      ["Network", [line.network?.operator ?? (line.network && `${line.network.mcc}-${line.network.mnc}`), line.country].filter(Boolean).join(", ")],
      ["Last seen", line.seen ? momentText(line.seen) : ""],
      ["Last used", line.last_used ? momentText(line.last_used) : ""],
      ["Packages", states.join(", ")],
      ["Data left", line.data_left === null ? "" : dataText(left)],
      ["Used in 7 days", line.used_bytes === null ? "" : dataText(used)],
      ["Profile", line.profile],
    ]),
  ];
  if (line.data_left !== null && line.used_bytes !== null && used + left > 0) {
    const label = `${dataText(used)} used in 7 days, ${dataText(left)} left`;
    parts.push(element("progress", label, { max: used + left, value: used, "aria-label": label }), paragraph(label, "quiet"));
  }
  showContent([...parts, list]);
}

function words(name) {
  const text = String(name).replaceAll("_", " ");
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

meetHost("line");
