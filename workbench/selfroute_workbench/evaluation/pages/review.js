"use strict";
const rows = JSON.parse(document.getElementById("rows").textContent);
const articles = [...document.querySelectorAll("article")];
const kind = document.getElementById("kind");
const save = document.getElementById("save");

function isKept(article) {
  return article.querySelector("input").checked;
}

function show() {
  for (const article of articles) {
    article.hidden = Boolean(kind.value) && article.dataset.kind !== kind.value;
  }
  document.getElementById("count").textContent = `${articles.filter(isKept).length} of ${rows.length} kept`;
}

function download() {
  const kept = rows.filter((_, number) => isKept(articles[number]));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([kept.map((row) => `${row}\n`).join("")], { type: "application/jsonl" }));
  link.download = save.dataset.name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

document.addEventListener("change", show);
save.addEventListener("click", download);
show();
