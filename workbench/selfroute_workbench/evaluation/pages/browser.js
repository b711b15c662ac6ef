"use strict";
const form = document.querySelector(".filters");
const list = document.querySelector(".questions");
const asked = [...list.querySelectorAll("article")];
const nothing = list.querySelector(".nothing");
const fields = form.elements;
const texts = new Map();
const orders = { asked: ["", 1], cost: ["cost", -1], tokens: ["tokens", -1], score: ["score", 1] };
let order = "asked";

function textOf(article) {
  if (!texts.has(article)) texts.set(article, article.textContent.toLowerCase());
  return texts.get(article);
}

function sort() {
  if (order === fields.order.value) return;
  order = fields.order.value;
  const [name, sign] = orders[order];
  const sorted = name ? [...asked].sort((one, other) => sign * (one.dataset[name] - other.dataset[name])) : asked;
  nothing.before(...sorted);
}

function filter() {
  const { mark, dataset, route, search } = fields;
  const wanted = search.value.trim().toLowerCase();
  let shown = 0;
  sort();
  for (const article of asked) {
    const data = article.dataset;
    const fits =
      (!mark.value || data.marks.split(" ").includes(mark.value)) &&
      (!dataset.value || data.dataset === dataset.value) &&
      (!route.value || data.routes.split(" ").includes(route.value)) &&
      (!wanted || textOf(article).includes(wanted));
    article.hidden = !fits;
    shown += fits;
  }
  nothing.hidden = shown > 0;
  form.querySelector("output").textContent =
    `${shown.toLocaleString("en")} of ${asked.length.toLocaleString("en")} questions`;
}

function go(from, steps) {
  const shown = [...list.querySelectorAll("article:not([hidden])")];
  const at = shown.indexOf(from);
  const next = at < 0 ? shown[steps > 0 ? 0 : shown.length - 1] : shown[at + steps];
  if (!next) return;
  const summary = next.querySelector("summary");
  summary.focus({ preventScroll: true });
  summary.scrollIntoView({ block: "nearest" });
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, button")) return;
  const article = event.target.closest("article");
  const onQuestion = article && event.target === article.querySelector("summary");
  const steps = { j: 1, k: -1, ...(onQuestion ? { ArrowDown: 1, ArrowUp: -1 } : {}) }[event.key];
  if (steps) go(article, steps);
  else if (event.key === "/") fields.search.focus();
  else return;
  event.preventDefault();
}

function openTarget() {
  const target = /^#question-\d+$/.test(location.hash) && document.getElementById(location.hash.slice(1));
  if (!target) return;
  target.querySelector("details").open = true;
  target.querySelector("summary").focus();
}

let waiting;
form.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(filter, 150);
});
form.addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("keydown", press);
addEventListener("hashchange", openTarget);
form.hidden = false;
document.querySelector(".keys").hidden = false;
filter();
openTarget();
