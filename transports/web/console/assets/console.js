// The console works without this script. With it, times are in the reader's zone, and texts can be copied by a button.
"use strict";
(() => {
  const language = document.documentElement.lang;
  const locale = language === "en" ? "en-GB" : language;
  const clock = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });
  const calendar = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeZone: "UTC" });
  const showTimes = (part) => {
    for (const each of part.querySelectorAll("time[datetime]")) {
      const said = each.getAttribute("datetime");
      const moment = new Date(/^\d+$/.test(said) ? Number(said) * 1000 : said);
      if (!Number.isNaN(moment.getTime())) each.textContent = (/^\d+-\d+-\d+$/.test(said) ? calendar : clock).format(moment);
    }
  };
  showTimes(document);
  // On a phone the menu is wider than the window: it begins where the reader is.
  const at = document.querySelector(".menu [aria-current]");
  if (at) at.parentElement.scrollLeft = at.offsetLeft - (at.parentElement.clientWidth - at.offsetWidth) / 2;
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
  // The page Events says how much is new. One visible page of this browser listens and tells the others; none does while all are hidden.
  // Who listens next goes on behind the last event that anybody was told.
  const newer = document.querySelector("a[data-stream]");
  if (newer && navigator.locks && "BroadcastChannel" in window) {
    const channel = new BroadcastChannel("console-events");
    const said = newer.textContent, wanted = newer.dataset.types, seen = new Set();
    const tell = (event) => {
      place = event.place;
      if (seen.has(event.id) || (wanted && event.type !== wanted && !event.type.startsWith(`${wanted}.`))) return;
      seen.add(event.id);
      newer.textContent = `${said} (${seen.size})`;
      newer.dataset.fresh = seen.size;
    };
    channel.onmessage = (message) => tell(message.data);
    const listen = (ended) => {
      const source = new EventSource(newer.dataset.stream + (place && `?cursor=${place}`));
      const stop = () => { document.removeEventListener("visibilitychange", hide); source.close(); ended(); };
      const hide = () => { if (document.hidden) stop(); };
      document.addEventListener("visibilitychange", hide);
      source.onmessage = (message) => {
        const { id, type } = JSON.parse(message.data);
        const event = { id, type, place: message.lastEventId };
        tell(event);
        channel.postMessage(event);
      };
      source.addEventListener("end", (message) => { if (JSON.parse(message.data).reason === "credential_ended") { over = true; stop(); } });
      source.onerror = () => { if (source.readyState === EventSource.CLOSED) { wait = 30000; place = ""; stop(); } };
    };
    let over = false, asking = false, wait = 0, place = "";
    const ask = async () => {
      if (asking || over || document.hidden) return;
      asking = true;
      if (wait) await new Promise((done) => setTimeout(done, wait));
      wait = 0;
      await navigator.locks.request("console-events", () => document.hidden ? null : new Promise(listen));
      asking = false;
      ask();
    };
    document.addEventListener("visibilitychange", ask);
    ask();
  }
})();
