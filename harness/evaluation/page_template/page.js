"use strict";
// Browser of the questions: filters, a list in pages, and the details of the chosen question.
// Texts of documents enter the page as text nodes only, never as markup.

const QUESTIONS_PER_PAGE = 50;
const FEW = 4; // with more systems the list shows A and B only, and the details open theirs
const MARKS = { right: "✓", wrong: "✗", unknown: "–" };
const byId = (id) => document.getElementById(id);

// ---- data: blocks of JSON in script elements, parsed when first needed (harness/evaluation/page_data.py)

const parsed = {};
const block = (id) => (parsed[id] ??= JSON.parse(byId(id).textContent));
const index = block("index");
const { systems, measures, questions, answers, values } = index;

const rowOf = (name, size, number) => block(`${name}-${Math.floor(number / size)}`)[number % size];
const detailsOf = (question) => rowOf("questions", index.questions_per_block, question);
const passage = (number) => rowOf("passages", index.passages_per_block, number);

const value = (system, measure, question) => values[system]?.[measure]?.[question] ?? null; // null: undefined

function verdict(system, question) {
  const first = value(system, 0, question);
  return first === null ? "unknown" : first === 1 ? "right" : "wrong";
}

// ---- elements

/** An element with properties and children; a string becomes a text node. */
function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

const number = (x) => (x === null ? "–" : String(Number(x.toPrecision(4))));
const mark = (name) => make("span", { className: `mark ${name}`, title: name, ariaLabel: name, role: "img" }, MARKS[name]);

/** A table that scrolls sideways in its own box; cells are strings or elements, the first of a row is its head. */
function table(caption, head, rows, className = "texts") {
  const cells = (row) => row.map((cell, i) => make(i ? "td" : "th", i ? {} : { scope: "row" }, cell));
  return make("div", { className: "scroll", tabIndex: 0 }, make("table", { className },
    make("caption", {}, caption),
    make("thead", {}, make("tr", {}, ...head.map((cell) => make("th", { scope: "col" }, cell)))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...cells(row))))));
}

// ---- filters

const form = byId("filters");
const fields = form.elements;

function setUpFilters() {
  const options = (select, texts, first) => {
    if (first !== undefined) select.append(make("option", { value: "" }, first));
    texts.forEach((text, i) => select.append(make("option", { value: first === undefined ? i : text }, text)));
  };
  const kinds = [...new Set(questions.map((question) => question.kind))].filter(Boolean).sort();
  options(fields.kind, kinds, "all");
  fields.kind.parentElement.hidden = kinds.length < 2;
  systems.forEach((system, i) => {
    const select = make("select", { name: `system${i}` }, make("option", { value: "" }, "all"));
    for (const name of Object.keys(MARKS)) {
      if (questions.some((_, question) => verdict(i, question) === name)) {
        select.append(make("option", { value: name }, `${MARKS[name]} ${name}`));
      }
    }
    byId("verdicts").append(make("label", {}, system, " ", select));
  });
  byId("verdicts-title").textContent = `Right (${measures[0]} is 1) or wrong`;
  byId("verdicts").parentElement.hidden = !measures.length;
  byId("verdicts").parentElement.open = systems.length <= FEW;
  options(fields.a, systems);
  options(fields.b, systems);
  options(fields.by, measures);
  if (systems.length > 1) fields.b.options[1].defaultSelected = true;
  else for (const element of form.querySelectorAll(".pair")) element.hidden = true;
  fields.a.closest("fieldset").hidden = !measures.length || !systems.length;
  form.reset();
}

const haystacks = []; // lower-case texts of a question in which a search looks, made when first needed
const haystack = (question) => (haystacks[question] ??= [
  questions[question].id, questions[question].text, ...questions[question].answers, ...answers.map((texts) => texts[question]),
].join("\n").toLowerCase());

const SHOWN = {
  a: (difference) => difference > 0,
  b: (difference) => difference < 0,
  different: (difference) => difference !== 0,
  equal: (difference) => difference === 0,
};

/** The questions that pass all filters, in the chosen order; a value that is undefined passes no comparison and comes last. */
function matching() {
  const text = fields.text.value.trim().toLowerCase();
  const kind = fields.kind.value;
  const wanted = systems.map((_, i) => fields[`system${i}`].value);
  const [a, b, by, show, sort] = ["a", "b", "by", "show", "sort"].map((name) => fields[name].value);
  const keys = questions.map((_, question) => {
    const [first, second] = [value(a, by, question), value(b, by, question)];
    return { first, difference: first === null || second === null ? null : first - second };
  });
  const found = [...questions.keys()].filter((question) =>
    (!kind || questions[question].kind === kind) &&
    wanted.every((name, i) => !name || verdict(i, question) === name) &&
    (!show || (keys[question].difference !== null && SHOWN[show](keys[question].difference))) &&
    (!text || haystack(question).includes(text)));
  const key = {
    "a-b": ({ difference }) => difference, "b-a": ({ difference }) => difference === null ? null : -difference,
    high: ({ first }) => first, low: ({ first }) => first === null ? null : -first,
  }[sort];
  const place = (question) => key(keys[question]) ?? -Infinity;
  return key ? found.sort((one, other) => (place(other) > place(one)) - (place(other) < place(one)) || one - other) : found;
}

// ---- list

let found = [];
let start = 0; // place of the page's first question in `found`
let chosen = null;

/** The systems that are compared; all if there are few. */
const inFocus = () => systems.length <= FEW ? [...systems.keys()] : [...new Set([Number(fields.a.value), Number(fields.b.value)])];

function item(question) {
  const { text, kind, answers: gold } = questions[question];
  const about = [kind, gold.length ? `answer: ${gold.join(" / ")}` : ""].filter(Boolean).join(" · ");
  const lines = inFocus().map((i) => make("span", { className: "system" },
    mark(verdict(i, question)),
    make("span", { className: "name" }, systems[i]),
    make("span", { className: "answer" }, answers[i][question]),
    make("span", { className: "values" }, valuesLine(i, question, [Number(fields.by.value)]))));
  const right = systems.filter((_, i) => verdict(i, question) === "right").length;
  const button = make("button", { type: "button", className: "item" },
    make("span", { className: "question" }, text), make("span", { className: "about" }, about), ...lines,
    systems.length > FEW ? make("span", { className: "about" }, `right: ${right} of ${systems.length} systems`) : "");
  button.dataset.question = question;
  return make("li", {}, button);
}

const valuesLine = (system, question, shown = [...measures.keys()]) => shown
  .map((i) => [measures[i], value(system, i, question)])
  .filter(([, x]) => x !== null).map(([name, x]) => `${name} ${Number(x.toFixed(2))}`).join(" · ");

function showList() {
  start = Math.max(0, Math.min(start, Math.floor((found.length - 1) / QUESTIONS_PER_PAGE) * QUESTIONS_PER_PAGE));
  const end = Math.min(start + QUESTIONS_PER_PAGE, found.length);
  const numbers = found.length ? `${(start + 1).toLocaleString("en")} to ${end.toLocaleString("en")} of ` : "";
  const all = found.length === questions.length ? "" : ` (of ${questions.length.toLocaleString("en")})`;
  byId("count").textContent = `${numbers}${found.length.toLocaleString("en")} questions${all}`;
  byId("earlier").disabled = start === 0;
  byId("later").disabled = end >= found.length;
  byId("list").replaceChildren(...found.slice(start, end).map(item));
  byId("list").start = start + 1;
  markChosen();
}

function markChosen() {
  for (const button of byId("list").querySelectorAll("button")) {
    if (Number(button.dataset.question) === chosen) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
}

// ---- details (their parts: details.js)

function showDetails() {
  byId("panes").classList.toggle("chosen", chosen !== null);
  if (chosen === null) return;
  const question = questions[chosen];
  const details = detailsOf(chosen);
  const position = found.indexOf(chosen);
  const step = (text, by) => make("button", {
    type: "button", disabled: position < 0 || found[position + by] === undefined,
    onclick: () => choose(found[position + by]),
  }, text);
  byId("details").replaceChildren(
    make("p", { className: "steps" },
      make("button", { type: "button", className: "back", onclick: () => choose(null) }, "Back to the list"),
      step("‹ Previous", -1), step("Next ›", 1)),
    make("h3", {}, question.text),
    make("p", { className: "about" }, [question.id, question.kind].filter(Boolean).join(" · ")),
    make("p", {}, "Gold answers: ", make("b", {}, question.answers.join(" / ") || "none in the file")),
    ...goldParts(question, details),
    ...details.cases.flatMap(({ title, columns, rows, note }) =>
      [table(title, columns, rows), note ? make("p", { className: "note" }, note) : ""]),
    ...systems.map((_, i) => systemPart(i, chosen, details)),
    costsTable(details));
}

function choose(question) {
  const before = chosen;
  chosen = question;
  remember("pushState");
  const place = found.indexOf(question);
  if (place >= 0 && (place < start || place >= start + QUESTIONS_PER_PAGE)) {
    start = Math.floor(place / QUESTIONS_PER_PAGE) * QUESTIONS_PER_PAGE;
    showList();
  } else {
    markChosen();
  }
  showDetails();
  if (question === null) byId("list").querySelector(`[data-question="${before}"]`)?.focus();
  else if (byId("details").getBoundingClientRect().top < 0 || byId("found").offsetParent === null) byId("details").scrollIntoView();
}

// ---- state in the address: what differs from a fresh page

function remember(how) {
  const state = new URLSearchParams();
  for (const field of fields) {
    if (field.name && field.value !== standard(field)) state.set(field.name, field.value);
  }
  if (start) state.set("from", start + 1);
  if (chosen !== null) state.set("question", questions[chosen].id);
  history[how](null, "", `#${state}`);
}

const standard = (field) => field.options ? ([...field.options].find((each) => each.defaultSelected) ?? field.options[0])?.value : "";

function restore() {
  const state = new URLSearchParams(location.hash.slice(1));
  form.reset();
  for (const field of fields) if (field.name && state.has(field.name)) field.value = state.get(field.name);
  for (const field of fields) if (field.options && field.selectedIndex < 0) field.value = standard(field); // an older page's
  const place = questions.findIndex(({ id }) => id === state.get("question"));
  found = matching();
  start = Math.floor((Number(state.get("from") ?? 1) - 1) / QUESTIONS_PER_PAGE) * QUESTIONS_PER_PAGE || 0;
  chosen = place < 0 ? null : place;
  showList();
  showDetails();
}

function filtered() {
  found = matching();
  start = 0;
  showList();
  showDetails(); // its steps go through the questions found
  remember("replaceState");
}

function turn(by) {
  start += by * QUESTIONS_PER_PAGE;
  showList();
  remember("replaceState");
  byId("found").scrollTop = 0;
}

setUpFilters();
form.addEventListener("input", filtered);
form.addEventListener("reset", () => setTimeout(filtered)); // the fields change after this event
form.addEventListener("submit", (event) => event.preventDefault());
byId("earlier").addEventListener("click", () => turn(-1));
byId("later").addEventListener("click", () => turn(1));
byId("list").addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button) choose(Number(button.dataset.question));
});
byId("list").addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by) return;
  event.preventDefault();
  const buttons = [...byId("list").querySelectorAll("button")];
  buttons[buttons.indexOf(document.activeElement) + by]?.focus();
});
window.addEventListener("popstate", () => {
  if (location.hash.length < 2 || location.hash.includes("=")) restore(); // else a part of the page, such as #tables
});
restore();
if (location.hash.includes("=")) byId(byId("found").offsetParent === null ? "details" : "browser").scrollIntoView();
