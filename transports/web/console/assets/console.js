// The console works without this script. With it, times are in the reader's zone, and texts can be copied by a button.
"use strict";
(() => {
  const language = document.documentElement.lang;
  const clock = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" });
  for (const each of document.querySelectorAll("time[datetime]")) {
    const said = each.getAttribute("datetime");
    const moment = new Date(/^\d+$/.test(said) ? Number(said) * 1000 : said);
    if (!Number.isNaN(moment.getTime())) each.textContent = clock.format(moment);
  }
  for (const each of document.querySelectorAll("pre > code")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet copy";
    button.textContent = language === "de" ? "Kopieren" : "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(each.textContent);
      button.textContent = language === "de" ? "Kopiert" : "Copied";
    });
    each.parentElement.before(button);
  }
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) return;
    const find = document.getElementById("find");
    if (find) { event.preventDefault(); find.focus(); }
  });
})();
