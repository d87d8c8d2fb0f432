function showAnswer(answer) {
  const found = answer.data ?? answer;
  const esim = found.esim ?? found.simInfo ?? found;
  const code = installText(esim);
  if (code === null) {
    setHeading("No eSIM to install yet");
    showContent([facts([["Status", found.status], ["Error", found.error?.message], ["Number", found.id ?? found.iccid]])]);
    return;
  }
  setHeading("Install the eSIM");
  const [, server, matching] = code.slice(4).split("$");
  showContent([
    drawQr(code, "QR code that installs the eSIM"),
    paragraph("Scan the code with the phone that is to use the eSIM, or type it in by hand:"),
    facts([
      ["Server (SM-DP+)", server],
      ["Activation code", matching],
      ["ICCID", esim.iccid ?? found.iccid],
      ["Plan", found.plan?.name],
    ]),
    paragraph("Whoever sees this code can install the eSIM, once. Keep it as you would a password.", "quiet"),
  ]);
}

// The same text as the service's own QR pictures have.
function installText(esim) {
  const code = esim.activation_code ?? esim.urlQrCode ?? null;
  if (typeof code === "string" && code.startsWith("LPA:")) return code;
  const [server, matching] = [esim.smdp_address ?? esim.smdpServer, esim.matching_id ?? esim.activationCode];
  return server && matching ? `LPA:1$${server}$${matching}` : null;
}

meetHost("install");
