// Search in the page: search/index.js holds [address, title, text] of every section, and is loaded with the first word typed.
// All words have to occur; a title counts more than the text, a whole name more than a part of one.
const input = document.getElementById("search"), found = document.getElementById("found");
let loading = null;

function load() {
  loading ??= new Promise((done) => {
    const script = document.createElement("script");
    script.src = base + "/search/index.js";
    script.onload = done;
    document.head.append(script);
  });
  return loading;
}

function score(title, text, words) {
  let sum = 0;
  for (const word of words) {
    const whole = new RegExp("(^|\\W)" + word.replace(/\W/g, "\\$&") + "(\\W|$)", "i");
    const hits = (title.includes(word) ? 20 : 0) + (whole.test(title) ? 40 : 0) + Math.min(text.split(word).length - 1, 10);
    if (!hits) return 0;
    sum += hits;
  }
  return sum;
}

function show(words) {
  const hits = documents.map(([at, title, text]) => [score(title.toLowerCase(), text.toLowerCase(), words), at, title, text])
    .filter((hit) => hit[0]).sort((a, b) => b[0] - a[0]).slice(0, 20);
  found.replaceChildren(...hits.map(([, at, title, text]) => {
    const item = document.createElement("li"), link = document.createElement("a"), line = document.createElement("p");
    const from = Math.max(0, text.toLowerCase().indexOf(words[0]) - 50);
    link.href = base + "/" + at;
    link.textContent = title;
    line.textContent = at.replace(/#.*/, "") + ": " + text.slice(from, from + 140);
    item.append(link, line);
    return item;
  }));
  if (!hits.length) found.textContent = "Nothing found.";
  found.hidden = false;
}

input.addEventListener("input", async () => {
  const words = input.value.toLowerCase().split(/\s+/).filter((word) => word.length > 1);
  found.hidden = true;
  if (!words.length) return;
  await load();
  show(words);
});
input.addEventListener("keydown", (event) => {
  if (event.key === "Escape") input.value = "", found.hidden = true;
  if (event.key === "Enter" && !found.hidden) found.querySelector("a")?.click();
});
