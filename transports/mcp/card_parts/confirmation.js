function showAnswer(answer) {
  setHeading("Done");
  const found = answer.data ?? answer;
  const rows = Object.entries(found).filter(([, value]) => ["string", "number", "boolean"].includes(typeof value));
  showContent([facts(rows.slice(0, 12).map(([name, value]) => [name.replaceAll("_", " "), value]))]);
}

meetHost("confirmation");
