// The console works without this script. With it, times are in the reader's zone, and texts can be copied by a button.
"use strict";
(() => {
  const language = document.documentElement.lang;
  const clock = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" });
  const showTimes = (part) => {
    for (const each of part.querySelectorAll("time[datetime]")) {
      const said = each.getAttribute("datetime");
      const moment = new Date(/^\d+$/.test(said) ? Number(said) * 1000 : said);
      if (!Number.isNaN(moment.getTime())) each.textContent = clock.format(moment);
    }
  };
  showTimes(document);
  // A part that says data-again changes by itself: the same page is asked again, while somebody looks at it.
  const lookAgain = () => {
    const live = document.querySelector("#live[data-again]");
    if (!live) return;
    const request = new XMLHttpRequest();
    request.responseType = "document";
    request.open("GET", location.href);
    request.addEventListener("load", () => {
      const found = request.status === 200 && request.response && request.response.getElementById("live");
      if (!found) return;
      const held = live.contains(document.activeElement);
      const part = document.importNode(found, true);
      live.replaceWith(part);
      showTimes(part);
      if (held) document.getElementById("content").focus();
    });
    request.addEventListener("loadend", () => setTimeout(lookAgain, 2000));
    if (document.hidden) setTimeout(lookAgain, 2000); else request.send();
  };
  setTimeout(lookAgain, 2000);
  document.addEventListener("change", (event) => {
    const form = event.target.name === "pick" && event.target.form;
    const told = form && form.querySelector("[data-chosen]");
    if (!told) return;
    const here = [...form.querySelectorAll("input[name=pick]")];
    const before = Number(told.dataset.chosen) - here.filter((each) => each.defaultChecked).length;
    told.textContent = before + here.filter((each) => each.checked).length;
  });
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
