"use strict";
const main = document.getElementById("now");
const state = document.getElementById("state");
const pause = document.getElementById("pause");
const ROUTES = ["rag", "sections", "long_context"];
const NAMES = { rag: "passages", sections: "sections", long_context: "whole documents" };
const UNKNOWN = "–";
let heard = null;
let timer;

function count(number) {
  return number.toLocaleString("en");
}

function percent(share) {
  return share === null ? UNKNOWN : `${(100 * share).toFixed(share && share < 0.1 ? 1 : 0)} %`;
}

function dollars(text) {
  if (text === null) return UNKNOWN;
  const amount = Math.abs(Number(text));
  const places = amount >= 1 || !amount ? 2 : amount >= 0.01 ? 4 : 6;
  const figure = amount.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places });
  return `${Number(text) < 0 ? "-" : ""}$${figure}`;
}

function seconds(time) {
  if (time === null) return UNKNOWN;
  return `${time.toLocaleString("en", { maximumFractionDigits: time < 1 ? 3 : 1 })} s`;
}

function say(id, text) {
  const element = document.getElementById(id);
  if (element.textContent !== text) element.textContent = text;
}

function element(name, text, className) {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

function drawHours(hours) {
  const drawing = document.getElementById("hours");
  const most = Math.max(1, ...hours.map((hour) => ROUTES.reduce((sum, route) => sum + hour[route], 0)));
  const width = 720 / hours.length;
  const bars = [];
  hours.forEach((hour, number) => {
    let top = 180;
    for (const route of ROUTES) {
      const height = (174 * hour[route]) / most;
      top -= height;
      if (!height) continue;
      const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      bar.setAttribute("class", route);
      bar.setAttribute("x", number * width + 2);
      bar.setAttribute("width", width - 4);
      bar.setAttribute("y", top);
      bar.setAttribute("height", height);
      bars.push(bar);
    }
  });
  drawing.replaceChildren(...bars);
  say("most", `at most ${count(most)} an hour`);
  const rows = [...hours].reverse().map((hour, ago) => {
    const row = document.createElement("tr");
    const head = element("th", ago ? `${ago} to ${ago + 1}` : "the last hour");
    head.scope = "row";
    row.append(head, ...[...ROUTES, "declined", "failed"].map((name) => element("td", count(hour[name]), "figure")));
    return row;
  });
  document.getElementById("table").replaceChildren(...rows);
}

function showFacts(figures) {
  const facts = [["queries", count(figures.queries)]];
  for (const route of ROUTES) {
    if (figures.routes[route]) facts.push([NAMES[route], count(figures.routes[route])]);
  }
  for (const route of ROUTES) {
    if (figures.p95[route].end !== null && figures.routes[route] !== figures.queries) facts.push([`95 % within, ${NAMES[route]}`, seconds(figures.p95[route].end)]);
  }
  facts.push(["cost", dollars(figures.cost) + (figures.cost !== null && figures.unpriced ? " and more" : "")]);
  if (figures.token_ratio !== null) facts.push(["tokens, of the long context's", percent(figures.token_ratio)]);
  const { declined, unanswerable, stopped, left, failed, unpriced } = figures;
  const others = { "declined at first": declined, "no answer in the documents": unanswerable };
  Object.assign(others, { "stopped by a policy": stopped, "left by the reader": left, "failed attempts": failed });
  Object.assign(others, { "without a price": unpriced });
  for (const [name, number] of Object.entries(others)) if (number) facts.push([name, count(number)]);
  for (const [name, number] of Object.entries(figures.errors)) facts.push([name, count(number)]);
  const rows = facts.map(([name, figure]) => {
    const row = document.createElement("div");
    row.append(element("dt", name), element("dd", figure));
    return row;
  });
  document.getElementById("facts").replaceChildren(...rows);
}

function show(figures) {
  const last = figures.hours[figures.hours.length - 1];
  const routed = ROUTES.reduce((sum, route) => sum + last[route], 0);
  say("per-hour", count(routed));
  say("per-hour-more", ROUTES.filter((route) => last[route]).map((route) => `${count(last[route])} ${NAMES[route]}`).join(", "));
  say("declined", percent(figures.declined_share));
  say("declined-more", `${count(figures.declined)} of ${count(figures.queries)} queries, by the first step`);
  say("saved", dollars(figures.saved));
  const { nothing_cached: cold, all_warm: warm } = figures.saved_range;
  const range = cold !== null && cold !== warm ? `${dollars(warm)} to ${dollars(cold)}, by what is cached` : "";
  say("saved-more", figures.saved === null ? "not known" : range || `of ${dollars(figures.cost)} paid`);
  say("p95", seconds(figures.p95.all.end));
  const first = figures.p95.all.first_text;
  say("p95-more", first === null ? "" : `first text ${seconds(first)}`);
  drawHours(figures.hours);
  showFacts(figures);
}

async function ask() {
  clearTimeout(timer);
  try {
    const response = await fetch(main.dataset.figures, { cache: "no-store" });
    if (!response.ok) throw new Error(`the server says ${response.status}`);
    show(await response.json());
    heard = new Date();
    state.parentElement.classList.remove("failed");
    say("state", paused() ? "Paused" : "Live");
    state.title = `as of ${heard.toLocaleTimeString()}`;
  } catch (error) {
    state.parentElement.classList.add("failed");
    say("state", `No figures (${error.message})${heard ? ` since ${heard.toLocaleTimeString()}` : ""}; trying again`);
  }
  clearTimeout(timer); // another request may have been on its way
  if (!paused() && !document.hidden) timer = setTimeout(ask, 1000 * Number(main.dataset.seconds));
}

function paused() {
  return pause.getAttribute("aria-pressed") === "true";
}

pause.addEventListener("click", () => {
  pause.setAttribute("aria-pressed", String(!paused()));
  clearTimeout(timer);
  if (paused()) say("state", "Paused");
  else ask();
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && !paused()) ask();
});
ask();
