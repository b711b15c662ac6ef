"use strict";
const form = document.querySelector(".filters");
const articles = [...document.querySelectorAll("article")];
const texts = new Map();

function textOf(article) {
  if (!texts.has(article)) texts.set(article, article.textContent.toLowerCase());
  return texts.get(article);
}

function filter() {
  const { dataset, route, disagree, worse, search } = form.elements;
  const wanted = search.value.trim().toLowerCase();
  let shown = 0;
  for (const article of articles) {
    const data = article.dataset;
    const fits =
      (!dataset.value || data.dataset === dataset.value) &&
      (!route.value || data.routes.split(" ").includes(route.value)) &&
      (!disagree.checked || "disagree" in data) &&
      (!worse.checked || "worse" in data) &&
      (!wanted || textOf(article).includes(wanted));
    article.hidden = !fits;
    shown += fits;
  }
  form.querySelector("output").textContent =
    `${shown.toLocaleString("en")} of ${articles.length.toLocaleString("en")} questions`;
}

for (const name of new Set(articles.map((article) => article.dataset.dataset))) {
  form.elements.dataset.add(new Option(name, name));
}
let waiting;
form.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(filter, 150);
});
form.addEventListener("submit", (event) => event.preventDefault());
form.hidden = false;
filter();
