// Elements, numbers and requests. Text from the result is inserted as text, never as markup.

export const byId = (id) => document.getElementById(id);

export const number = (value) => value.toLocaleString("en-GB");

export const share = (value) => (value >= 0.001 ? value.toFixed(3) : value.toExponential(1));

export const some = (count, one, more = `${one}s`) => `${number(count)} ${count === 1 ? one : more}`;

const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]|\p{Cs}/gu;

/** A text with control characters and direction overrides written as \x1b or \u202e. */
export function visible(text) {
  const code = (control) => control.codePointAt(0).toString(16);
  return text.replace(CONTROLS, (found) => (code(found).length < 3 ? `\\x${code(found).padStart(2, "0")}` : `\\u${code(found)}`));
}

/** A text cut to at most `most` characters, for a label. */
export function short(text, most = 40) {
  const letters = [...visible(text)];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : text;
}

/** An element with attributes and children. A string as a child becomes text. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.map((child) => (typeof child === "string" ? visible(child) : child)));
  return made;
}

/** A vertex in words: its label and id, or its id. */
export const named = (id, label) => (label === null || label === undefined || label === id ? id : `${label} (${id})`);

/** The groups that the page shows: "lambda", or the name of a program. Another choice is another address. */
export const groups = new URLSearchParams(location.search).get("groups") ?? "lambda";
export const ofLambda = groups === "lambda";

/** A level of the hierarchy in words; `to`: the last of several levels. */
export const level = (k, to = k) => `${ofLambda ? "λ" : "level"} ${number(k)}${to === k ? "" : `–${number(to)}`}`;

const KINDS = ["component", "dn-graph", "vertex", "search"];
export const GRAPH = "#graph";

/** What the address after # selects: "graph", or one of KINDS and an id. Empty for any other text. */
export function chosen() {
  if (location.hash === GRAPH) return { kind: "graph" };
  const [kind, id] = location.hash.slice(1).split("=", 2);
  try {
    return id === undefined || !KINDS.includes(kind) ? {} : { kind, id: decodeURIComponent(id) };
  } catch {
    return {};
  }
}

export const address = (kind, id) => `#${kind}=${encodeURIComponent(id)}`;

export const link = (kind, id, text) => element("a", { href: address(kind, id) }, text);

/** Some names in a row, and the number of those that are left out. */
export const names = (shown, left) =>
  element("ul", { class: "names" }, ...shown.map((name) => element("li", {}, name)), ...(left ? [element("li", { class: "left" }, `${number(left)} more`)] : []));

/** A table. A column whose heading ends in > holds numbers and is right-aligned. */
export function table(caption, headings, rows) {
  const right = headings.map((heading) => heading.endsWith(">"));
  const cell = (tag) => (value, column) =>
    element(tag, { class: right[column] ? "number" : null, scope: tag === "th" ? "col" : null }, value);
  const head = element("tr", {}, ...headings.map((heading) => heading.replace(/>$/, "")).map(cell("th")));
  return element(
    "div",
    { class: "scrolls" },
    element(
      "table",
      {},
      element("caption", {}, caption),
      element("thead", {}, head),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map(cell("td"))))),
    ),
  );
}

/** The server's answer to a request. Throws an Error with the server's message, and with `next` if it has ids that follow. */
export async function ask(question, parameters = {}) {
  let response;
  try {
    response = await fetch(`api/${question}?${new URLSearchParams({ groups, ...parameters })}`);
  } catch {
    throw new Error("edgemill explore does not answer. Is it still running?");
  }
  const answer = await response.json();
  if (!response.ok) throw Object.assign(new Error(answer.error), { next: answer.next, missing: response.status === 404 });
  return answer;
}
