"use strict";
// The table of a plot has the numbers that the script shows at the pointer or after an arrow key. On a live page the script
// fetches the page every few seconds and replaces the parts that changed. Open details, scroll positions, selected text and
// the focus are kept. Everything else works without this script.

function tell(plot, which) {
  const figure = plot.closest("figure"), rows = [...figure.querySelectorAll("tr[data-x]")].reverse();
  if (!rows.length) return;
  const k = Math.max(0, Math.min(rows.length - 1, which(rows))), row = rows[k], x = row.dataset.x / 10 + "%";
  const cursor = plot.querySelector(".cursor"), names = figure.querySelectorAll("thead th");
  cursor.setAttribute("x1", x);
  cursor.setAttribute("x2", x);
  cursor.classList.add("on");
  plot.dataset.k = k;
  figure.querySelector("output").textContent =
    [...row.cells].map((cell, i) => i ? names[i].textContent + " " + cell.textContent : cell.textContent).join(" · ");
}

function hush(plot) {
  plot.querySelector(".cursor").classList.remove("on");
  plot.closest("figure").querySelector("output").textContent = "";
  delete plot.dataset.k;
}

document.addEventListener("pointermove", event => {
  const plot = event.target.closest(".plot");
  for (const other of document.querySelectorAll(".plot[data-k]"))
    if (other !== plot && other !== document.activeElement) hush(other);
  if (!plot) return;
  const box = plot.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * 1000;
  tell(plot, rows => rows.reduce((best, row, i) => Math.abs(row.dataset.x - x) < Math.abs(rows[best].dataset.x - x) ? i : best, 0));
});
document.addEventListener("keydown", event => {
  const plot = event.target.closest(".plot");
  if (!plot) return;
  const last = 1e9, k = "k" in plot.dataset ? Number(plot.dataset.k) : last;
  const to = { ArrowLeft: k === last ? last : k - 1, ArrowRight: k + 1, Home: 0, End: last }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  plot.closest("figure").querySelector("output").setAttribute("aria-live", "polite");
  tell(plot, () => to);
});
document.addEventListener("focusout", event => event.target.matches(".plot") && hush(event.target));
document.addEventListener("click", async event => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  const code = button.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
  } catch {  // not allowed here: what is selected can be copied by hand
    getSelection().selectAllChildren(code);
    button.textContent = "Selected";
  }
});

function equip(root) {
  for (const plot of root.querySelectorAll(".plot")) plot.tabIndex = 0;
  for (const fix of root.querySelectorAll(".fix")) {
    const button = document.createElement("button");
    button.className = "copy";
    button.type = "button";
    button.textContent = "Copy";
    fix.append(button);
  }
}

const partsOf = root => new Map([...root.querySelectorAll("[data-part]")].map(part => [part.dataset.part, part]));
const shown = new Map([...partsOf(document)].map(([name, part]) => [name, part.outerHTML]));
equip(document);

const FOCUSABLE = "a, button, input, summary, [tabindex]";

function replace(old, fresh) {
  const selection = getSelection();
  if (!selection.isCollapsed && selection.containsNode(old, true)) return false;
  const told = [...old.querySelectorAll(".plot")].map(plot => plot.dataset.k);
  const scrolled = [...old.querySelectorAll(".scroll")].map(box => [box.scrollLeft, box.scrollTop]);
  const focus = [...old.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement);
  const next = document.importNode(fresh, true);
  equip(next);
  for (const details of next.querySelectorAll("details[id]")) {
    const before = document.getElementById(details.id);
    if (before) details.open = before.open;
  }
  old.replaceWith(next);
  next.querySelectorAll(".plot").forEach((plot, i) => told[i] !== undefined && tell(plot, () => Number(told[i])));
  next.querySelectorAll(".scroll").forEach((box, i) => scrolled[i] && box.scrollTo(...scrolled[i]));
  if (focus >= 0) next.querySelectorAll(FOCUSABLE)[focus]?.focus({ preventScroll: true });
  return true;
}

function show(page, whole) {
  const main = document.querySelector("main"), parts = partsOf(document), fresh = partsOf(page);
  if (whole && [...fresh.keys()].join() !== [...parts.keys()].join()) {
    const next = document.importNode(page.querySelector("main"), true);
    equip(next);
    main.replaceWith(next);
    shown.clear();
  }
  const top = [...parts.values()].find(part => part.getBoundingClientRect().bottom > 0);
  const name = top && top.dataset.part, before = top && top.getBoundingClientRect().top;
  for (const [name, part] of fresh) {
    const old = partsOf(document).get(name), text = part.outerHTML;
    if (old && shown.get(name) !== text && (whole || name === "verdict") && replace(old, part)) shown.set(name, text);
  }
  const now = name && partsOf(document).get(name);
  if (now && scrollY) scrollBy({ top: now.getBoundingClientRect().top - before, behavior: "instant" });
}

const seconds = Number(document.body.dataset.live);
if (seconds) {
  const news = document.getElementById("news"), pause = document.createElement("button");
  let paused = false, timer = 0;
  const say = words => { if (news.textContent !== words) news.textContent = words; };

  async function refresh() {
    clearTimeout(timer);
    try {
      const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(20000) });
      const text = await answer.text();
      if (paused) return;  // the user paused during this request
      const answered = answer.ok || answer.status === 404;  // 404: no page or host has this name
      show(new DOMParser().parseFromString(text, "text/html"), answered);
      document.querySelector("main").classList.toggle("old", !answered);
      say("");
    } catch {
      document.querySelector("main").classList.add("old");
      say("The dashboard does not answer: these figures are old. It goes on by itself once recrawl dashboard runs again.");
    }
    if (!paused && !document.hidden) timer = setTimeout(refresh, seconds * 1000);
  }

  document.documentElement.classList.add("live");
  pause.type = "button";
  pause.id = "pause";
  pause.textContent = "Stop updating";
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Keep updating" : "Stop updating";
    if (paused) clearTimeout(timer); else refresh();
  });
  document.querySelector("header form").append(pause);
  document.addEventListener("visibilitychange", () => { if (!document.hidden && !paused) refresh(); });
  timer = setTimeout(refresh, seconds * 1000);
}
