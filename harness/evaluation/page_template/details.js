// Details of one question: gold passages, each system's evidence, answer and notes, costs.  Functions only: joined to page.js.

/** A passage's text with the answers marked. */
function marked(text, gold) {
  const escaped = gold.filter(Boolean).map((answer) => answer.replace(/[\\^$.*+?()[\]{}|\/]/g, "\\$&"));
  if (!escaped.length) return [text];
  const whole = new RegExp(`(?<![\\p{L}\\p{N}])(${escaped.join("|")})(?![\\p{L}\\p{N}])`, "giu");
  return text.split(whole).map((part, i) => (i % 2 ? make("mark", {}, part) : part));
}

/** The gold passages, and which system found which; without any, which system found a passage with an answer. */
function goldParts(question, details) {
  const columns = details.gold.map((gold) => [passage(gold)[0] || "without title", (hit) => hit[0] === gold]);
  if (details.segments.length) columns.push(["gold segment", (hit) => hit[2] === "gold"]);
  if (!columns.length && question.answers.length) columns.push(["passage with an answer", (hit) => hit[2] === "answer"]);
  const cell = (evidence, passes) => {
    const rank = evidence.findIndex(passes) + 1;
    return make("span", { className: "place" }, mark(rank ? "right" : "wrong"), rank ? ` rank ${rank}` : " missed");
  };
  const rows = details.systems.map(({ evidence }, i) => [systems[i], ...columns.map(([, passes]) => cell(evidence, passes))]);
  return [
    ...details.gold.map((gold) => make("details", { className: "gold-passages" },
      make("summary", {}, `★ gold passage: ${passage(gold)[0] || "without title"}`),
      make("p", {}, ...marked(passage(gold)[1], question.answers)))),
    ...details.segments.map((place) => make("p", { className: "gold-passages" }, `★ gold segment: ${place}`)),
    details.elsewhere.length ? make("p", { className: "missed" }, `gold, but not in the file: ${details.elsewhere.join(", ")}`) : "",
    columns.length && systems.length ? table("Found and missed", ["", ...columns.map(([title]) => title)], rows) : "",
  ];
}

function hit([place, score, kind, why], rank, question) {
  const [title, text, about] = passage(place);
  const badge = { gold: "★ gold", answer: "◆ contains an answer" }[kind];
  return make("li", { className: kind },
    make("p", { className: "head" }, make("b", {}, `${rank + 1}. ${title || "without title"}`), " ",
      badge ? make("span", { className: "badge" }, badge) : "", ` score ${number(score)}`),
    why ? make("p", { className: "why" }, why) : "",
    make("p", { className: "text" }, ...marked(text, question.answers)),
    make("p", { className: "about" }, about));
}

function systemPart(i, place, details) {
  const { evidence, notes, logprob } = details.systems[i];
  const question = questions[place];
  const missed = details.gold.filter((gold) => !evidence.some((each) => each[0] === gold)).map((gold) => passage(gold)[0]);
  const facts = [valuesLine(i, place), logprob === null ? "" : `log-probability ${number(logprob)}`].filter(Boolean);
  return make("details", { className: "of-system", open: inFocus().includes(i) },
    make("summary", {}, mark(verdict(i, place)), ` ${systems[i]}: `, make("b", {}, answers[i][place] || "no answer")),
    make("p", { className: "about" }, facts.join(" · ")),
    missed.length ? make("p", { className: "missed" }, `missed: ${missed.join(", ")}`) : "",
    make("ol", { className: "evidence" }, ...evidence.map((each, rank) => hit(each, rank, question))),
    evidence.length ? "" : make("p", { className: "about" }, "no passages"),
    ...notes.map(([name, words]) => make("p", { className: "why" }, `${name}: ${words}`)));
}

function costsTable(details) {
  const names = [...new Set(details.systems.flatMap(({ costs }) => Object.keys(costs)))];
  return names.length ? table("Costs", ["", ...names], details.systems.map(({ costs }, i) =>
    [systems[i], ...names.map((name) => (Object.hasOwn(costs, name) ? number(costs[name]) : ""))]), "numbers") : "";
}
