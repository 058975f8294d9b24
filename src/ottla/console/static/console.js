// What the pages cannot do by themselves: refresh, stream records, keys, dark or light. Pages are rendered by the server;
// this script only ever puts text and fragments of our own templates into them.
"use strict";

(() => {
  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // --- dark or light
  function switchTheme() {
    const root = document.documentElement;
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
    document.cookie = `theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=lax`;
  }
  one("[data-theme-switch]")?.addEventListener("click", switchTheme);

  // --- the menu of narrow screens
  const menu = one("[data-toggle=menu]");
  menu?.addEventListener("click", () => {
    const isOpen = one("#sidebar").classList.toggle("open");
    menu.setAttribute("aria-expanded", String(isOpen));
  });

  // --- tables that the server does not sort: by a click on a heading, which stays while the page refreshes itself
  const UNITS = { k: 1e3, M: 1e6, G: 1e9, T: 1e12, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, ms: 1, s: 1e3, min: 6e4, h: 36e5, d: 864e5 };
  const sortedBy = new Map();
  const asSent = new WeakMap();
  function comparable(cell) {
    const text = cell.textContent.trim();
    if (!text || text === "–") return null;
    const number = cell.matches(".n") && /^([+-]?[\d,]*\.?\d+)\s*([a-zA-Z]*)/.exec(text);
    return number ? Number(number[1].replaceAll(",", "")) * (UNITS[number[2]] ?? 1) : text.toLowerCase();
  }
  function sortRows(table, column, isDown) {
    const body = table.tBodies[0];
    const known = [...body.rows].map((row) => [comparable(row.cells[column]), row]);
    // What is not known comes last, whichever way it is sorted.
    known.sort(([a], [b]) => (a === null || b === null ? (a === null) - (b === null) : (a < b ? -1 : a > b ? 1 : 0) * (isDown ? -1 : 1)));
    body.append(...known.map(([, row]) => row));
    all("thead th", table).forEach((heading, at) => {
      heading.toggleAttribute("aria-sort", at === column);
      if (at === column) heading.setAttribute("aria-sort", isDown ? "descending" : "ascending");
    });
  }
  function prepareTables(within) {
    for (const table of all("table.rows:not(.records, .settings, .documented, .story)", within)) {
      const rows = [...(table.tBodies[0]?.rows ?? [])];
      if (!table.tHead || one("th a", table.tHead) || rows.length < 2 || rows.some((row) => row.cells.length !== table.tHead.rows[0].cells.length)) continue;
      const name = table.closest("[aria-label]")?.getAttribute("aria-label") ?? "";
      [...table.tHead.rows[0].cells].forEach((heading, column) => {
        if (one(".sr", heading) || !heading.textContent.trim()) return;
        const button = document.createElement("button");
        button.type = "button";
        button.className = "sorter";
        button.append(...heading.childNodes);
        heading.append(button);
        button.addEventListener("click", () => {
          const before = sortedBy.get(name);
          // Of numbers one looks for the largest.
          const isDown = before?.column === column ? !before.isDown : heading.matches(".n");
          sortedBy.set(name, { column, isDown });
          sortRows(table, column, isDown);
        });
      });
      const chosen = sortedBy.get(name);
      if (chosen) sortRows(table, chosen.column, chosen.isDown);
    }
  }
  for (const part of all("[data-live]")) asSent.set(part, part.innerHTML);
  prepareTables(document);

  // --- pages stay fresh: the same page again, and what is marked as live is replaced
  const REFRESH_MS = 5000;
  function isBusy() {
    const at = document.activeElement;
    return document.hidden || one("dialog[open]") || (at && at.closest("[data-live]") && at.matches("input, select, textarea, summary"));
  }
  // Whoever walks by keyboard stays where they are: on the same link or button, or on the one at its place.
  function focusIn(part) {
    const reachable = () => all("a[href], button, [tabindex]", part);
    const at = reachable().indexOf(document.activeElement);
    if (at < 0) return null;
    const html = document.activeElement.outerHTML;
    return () => {
      const now = reachable();
      (now.find((each) => each.outerHTML === html) ?? now[Math.min(at, now.length - 1)])?.focus({ preventScroll: true });
    };
  }
  async function refresh() {
    if (isBusy() || !one("[data-live]")) return;
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html", "x-refresh": "1" }, redirect: "manual" });
      if (answer.type === "opaqueredirect" || answer.status === 401) return location.reload();
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (!fresh.querySelector("#content")) throw new Error("not a page of the console");
      one("#offline").hidden = true;
      for (const old of all("[data-live]")) {
        const now = fresh.getElementById(old.id);
        if (!now) continue;
        const sent = now.innerHTML;
        if (asSent.get(old) !== sent) {
          asSent.set(old, sent);
          const open = all("details[open]", old).map((each) => all("details", old).indexOf(each));
          const back = focusIn(old);
          old.replaceChildren(...now.childNodes);
          prepareTables(old);
          back?.();
          const details = all("details", old);
          for (const index of open) if (details[index]) details[index].open = true;
        }
        if (old.className !== now.className) old.className = now.className;
        if (now.title) old.title = now.title;
      }
    } catch {
      one("#offline").hidden = false;
    }
  }
  if (one("#content")) setInterval(refresh, REFRESH_MS);

  // --- forms
  for (const box of all("[data-submit]")) box.addEventListener("change", () => box.form.requestSubmit());
  for (const from of all("[data-from]")) {
    const at = one("[data-at]", from.form);
    from.addEventListener("change", () => { at.hidden = !["offset", "time"].includes(from.value); });
  }
  for (const form of all("form[method=get]")) {
    // Deep links are short: what is empty is not in them.
    form.addEventListener("formdata", (event) => {
      for (const [name, value] of [...event.formData]) if (value === "") event.formData.delete(name);
    });
  }
  // What somebody has typed into the address may be no escape at all.
  const decoded = (text) => { try { return decodeURIComponent(text); } catch { return text; } };
  for (const filter of all("[data-filter-rows]")) {
    const rows = all(`#${filter.dataset.filterRows} tbody tr`);
    const apply = () => {
      const wanted = filter.value.toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
      history.replaceState(null, "", wanted ? `#${encodeURIComponent(filter.value)}` : location.pathname + location.search);
    };
    if (location.hash) { filter.value = decoded(location.hash.slice(1)); apply(); }
    filter.addEventListener("input", apply);
    filter.form?.addEventListener("submit", (event) => event.preventDefault());
  }

  const number = new Intl.NumberFormat("en");
  const size = (bytes) => bytes >= 1048576 ? `${number.format(Math.round(bytes / 104857.6) / 10)} MiB` : `${number.format(Math.round(bytes / 1024))} KiB`;

  // --- the path of a record
  const tracing = one("[data-trace]");
  if (tracing) {
    const told = one("#told"), bar = one("#bar"), cancel = one("#cancel");
    const source = new EventSource(tracing.dataset.trace);
    cancel.hidden = false;
    const end = (how, words) => {
      source.close();
      cancel.hidden = bar.hidden = true;
      if (words) told.textContent = words;
      if (how !== "done") told.className = "bad";
      tracing.dataset.done = how;
    };
    const show = (now) => {
      told.textContent = `${number.format(now.hops)} found; searched ${number.format(now.records)} records, ${size(now.bytes)} in ${now.seconds.toFixed(2)} s.`;
    };
    source.addEventListener("progress", (event) => show(JSON.parse(event.data)));
    source.addEventListener("trace", (event) => { one("#trace").innerHTML = event.data; });
    source.addEventListener("done", (event) => { show(JSON.parse(event.data)); end("done"); });
    source.addEventListener("trouble", (event) => end("trouble", JSON.parse(event.data).sentence));
    source.onerror = () => { if (!tracing.dataset.done) end("trouble", "The connection was lost: trace it again."); };
    cancel.addEventListener("click", () => end("cancelled", "Cancelled."));
  }

  // --- records
  const results = one("[data-stream]");
  if (results) {
    const rows = one("#rows"), told = one("#told"), bar = one("#bar"), cancel = one("#cancel"), more = one("#more");
    const ROWS_KEPT_MAX = 1000;
    const isTail = new URL(results.dataset.stream, location.href).searchParams.get("tail") === "1";
    const source = new EventSource(results.dataset.stream);
    cancel.hidden = false;
    const stop = (words) => { source.close(); cancel.hidden = true; if (words) told.textContent = words; };
    const show = (now) => {
      const rate = now.seconds > 0.05 ? `, ${size(now.bytes / now.seconds)}/s` : "";
      if (isTail) {
        told.textContent = `Live: ${number.format(now.matches)} shown of ${number.format(now.records)} new records`;
        bar.removeAttribute("value");
        return;
      }
      bar.value = now.total ? now.searched / now.total : 1;
      const share = now.total ? Math.floor((100 * now.searched) / now.total) : 100;
      const read = `${number.format(now.records)} ${now.records === 1 ? "record" : "records"}, ${size(now.bytes)}`;
      const took = `in ${now.seconds.toFixed(2)} s${rate}`;
      // Of what was read, only that counts as searched up to which every record is shown that should be.
      const far = share === 100 ? `searched ${read} (100 % of the range) ${took}` : `read ${read} ${took}; ${share} % of the range is searched`;
      const ends = { enough: "", everything: " That is all.", time: " The time is over: it can go on.", cancelled: " Cancelled." };
      told.textContent = `${number.format(now.matches)} found; ${far}.${ends[now.ended] ?? ""}${now.notices.length ? " " + now.notices.join(" ") : ""}`;
    };
    source.addEventListener("rows", (event) => {
      rows.insertAdjacentHTML(isTail ? "afterbegin" : "beforeend", event.data);
      while (rows.children.length > ROWS_KEPT_MAX) (isTail ? rows.lastElementChild : rows.firstElementChild).remove();
    });
    let last = null;
    source.addEventListener("progress", (event) => { last = JSON.parse(event.data); show(last); });
    source.addEventListener("done", (event) => {
      const now = JSON.parse(event.data);
      stop();
      show(now);
      results.dataset.done = now.ended ?? "tail";
      if (isTail) told.textContent += ". It has ended by itself: start it again to see more.";
      if (!rows.children.length && now.ended === "everything") {
        const row = rows.insertRow(), cell = row.insertCell();
        cell.colSpan = 5; cell.className = "empty"; cell.textContent = now.total ? "No record of the range is such." : "There are no records here: Produce writes one, Live tail waits for them.";
      }
      if (["enough", "time"].includes(now.ended) && now.searched < now.total) {
        one("#next").href = `${location.pathname}?${now.next}`;
        one("#next").textContent = now.ended === "time" ? "Search on from here" : "Next records";
        more.hidden = false;
      }
    });
    source.addEventListener("trouble", (event) => {
      stop(JSON.parse(event.data).sentence);
      told.className = "bad";
      results.dataset.done = "trouble";
    });
    source.onerror = () => { stop("The connection was lost: search again."); told.className = "bad"; results.dataset.done = "trouble"; };
    cancel.addEventListener("click", () => stop(last ? `${told.textContent} Cancelled.` : "Cancelled."));
  }

  // --- keys
  let isGoing = false, at = -1;
  function move(step) {
    const rows = all("table.rows tbody tr");
    if (!rows.length) return;
    rows[at]?.classList.remove("at");
    at = Math.max(0, Math.min(rows.length - 1, at + step));
    rows[at].classList.add("at");
    rows[at].scrollIntoView({ block: "nearest" });
  }
  const keys = one("#keys");
  one("[data-keys]")?.addEventListener("click", () => keys.showModal());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target;
    if (target.matches("input, textarea, select")) {
      if (event.key === "Escape") target.blur();
      return;
    }
    if (isGoing) {
      isGoing = false;
      const link = one(`[data-key="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); link.click(); }
      return;
    }
    const row = all("table.rows tbody tr")[at];
    const does = {
      "/": () => one("#jump").focus(),
      f: () => one("[data-filter], [data-filter-rows]")?.focus(),
      d: switchTheme,
      "?": () => keys.showModal(),
      g: () => { isGoing = true; setTimeout(() => { isGoing = false; }, 1200); },
      j: () => move(1),
      k: () => move(-1),
      Enter: () => (row && target === document.body ? one("a, summary", row)?.click() : undefined),
    }[event.key];
    if (does) { if (event.key !== "Enter") event.preventDefault(); does(); }
  });
})();
