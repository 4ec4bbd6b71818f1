// The page. The address after # selects what to request from the server and to show.

import { Drawing } from "./drawing.js";
import { Icicle, LEAST, isDNGraph } from "./icicle.js";
import { members } from "./members.js";
import { address, ask, byId, chosen, element, GRAPH, groups, level, link, named, number, ofLambda, share, short, some, table, visible } from "./page.js";
import { legend, onTheme } from "./palette.js";

const DEPTH = 16;
const BRANCHES = 8;
const MOST_GROUPS = 12;

let result;
let best; // the id of the group that the list begins with at first, if there is one
let above = []; // the components that contain the top of the hierarchy's picture, outermost first
let first = true; // whether the page has shown nothing yet
let selection = 0; // counts selections; answers to an earlier selection are dropped

const drawing = new Drawing();
const icicle = new Icicle(byId("icicle"), byId("readout"), {
  open: (node) => goTo(kindOf(isDNGraph(node)), (node.children ? node : (node.to ?? node)).component),
  listed: () => byId("inside").querySelector("a, button")?.focus(),
  up: () => {
    const { component } = icicle.top;
    if (component === null) return;
    if (!ofLambda) goTo("component", component); // it is shown below the group around it
    else above.length ? goTo("component", above.at(-1).component) : (location.hash = GRAPH);
  },
});

/** What the address calls a group. */
const kindOf = (dnGraph) => (dnGraph ? "dn-graph" : "component");

/** A group in words that link to it. */
const groupLink = (component, k, dnGraph) => link(kindOf(dnGraph), component, dnGraph ? `DN-graph, ${level(k)}` : level(k));

function goTo(kind, id) {
  location.hash = address(kind, id);
}

function say(text, fine = false) {
  byId("status").textContent = visible(text);
  byId("status").classList.toggle("fine", fine);
}

/** The answer to a request. Throws if the user has selected something else meanwhile. */
async function answer(question, parameters) {
  const own = selection;
  const found = await ask(question, parameters);
  if (own !== selection) throw new Error("something else was selected");
  return found;
}

/** Show the hierarchy below a component (null: all of it), and mark the component `marked`. */
async function showHierarchy(component, marked) {
  const { path, node } = await answer("hierarchy", { depth: DEPTH, most: 100, ...(component === null ? {} : { component }) });
  above = path;
  const steps = [element("a", { href: GRAPH }, "graph"), ...path.map((step) => groupLink(step.component, step.k, false))];
  const shown = steps.length > 7 ? [...steps.slice(0, 2), "…", ...steps.slice(-4)] : steps;
  const here = node.component === null ? [] : [element("span", { "aria-current": "true" }, level(node.k))];
  byId("path").replaceChildren(...[...(here.length ? shown : []), ...here].map((step) => element("li", {}, step)));
  icicle.show(node, result.lambda, marked);
  const { count, largest } = node.children;
  const rows = largest.map((child) => [
    groupLink(child.component, child.k, isDNGraph(child)),
    number(child.vertices),
    number(child.edges),
  ]);
  const caption = count > largest.length ? `The ${number(largest.length)} largest of ${some(count, "group")} in it` : `${some(count, "group")} in it, the largest first`;
  byId("inside").replaceChildren(...(rows.length ? [table(caption, ["group", "vertices>", "edges>"], rows)] : []));
  return node;
}

/**
 * Show a group in the hierarchy. Of λ: mark its cell, or show the farthest ancestor below which it is wide enough to draw. Of a
 * program: show it below the group around it, with the groups in it, or by itself if it is too narrow there.
 */
async function showInHierarchy(id) {
  if (ofLambda && icicle.has(id)) return icicle.mark(id);
  const { path, node } = await answer("hierarchy", { component: id });
  if (!ofLambda) {
    await showHierarchy(path.at(-1)?.component ?? null, id);
    if (!icicle.has(id)) await showHierarchy(id);
    return;
  }
  const least = 2 * LEAST / icicle.container.clientWidth;
  const far = path.slice(-BRANCHES).find((step) => node.edges / step.edges > least);
  for (const holder of [far, path.at(-1)]) {
    await showHierarchy(holder?.component ?? null, id);
    if (icicle.has(id)) return;
  }
}

function title(text) {
  byId("chosen-title").textContent = visible(text);
}

function facts(pairs, ...more) {
  const list = element("dl", {}, ...pairs.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  byId("facts").replaceChildren(list, ...more);
}

const factsOf = (group) => [
  [ofLambda ? "λ" : "highest level", number(group.k)],
  ["vertices", number(group.vertices)],
  ["edges", number(group.edges)],
  ["density", share(group.density)],
  ...(group.triangles === null ? [] : [[result.measure, number(group.triangles)]]),
  ["id", group.component],
  ...(result.series && group.track !== null ? [["track over nights", group.track]] : []),
];

async function showGroup(id, vertex) {
  const drawn = await answer("drawing", { group: id });
  return () => {
    if (vertex === undefined) {
      title(`${ofLambda ? "DN-graph" : "Group"} of ${some(drawn.group.vertices, "vertex", "vertices")}`);
      facts(factsOf(drawn.group), ...members(drawn, say));
    }
    current(id);
    drawing.show(drawn, result.lambda, vertex);
  };
}

/** Mark the row of a group in the list. */
function current(id) {
  for (const row of byId("largest").querySelectorAll("tbody tr")) {
    if (row.querySelector("a").getAttribute("href") === address(kindOf(ofLambda), id)) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
  }
}

/** Hide the drawing, and mark no row. */
function clear() {
  drawing.hide();
  current(null);
}

function showComponent(node) {
  clear();
  if (node.component === null) {
    title("The whole graph");
    facts([["edges", number(result.edges)], ["vertices", number(result.vertices)], [ofLambda ? "DN-graphs" : "groups", number(result.groups)]]);
    return;
  }
  title(`A group of λ ${number(node.k)}`);
  const inner = node.to ?? node;
  const steps = node.to ? [["at λ " + number(inner.k), `${some(inner.vertices, "vertex", "vertices")}, ${some(inner.edges, "edge")}`]] : [];
  const note = element("p", {}, `All its edges have λ ${number(node.k)} or more. Select a DN-graph in it to see its drawing.`);
  facts([["λ", number(node.k)], ["vertices", number(node.vertices)], ["edges", number(node.edges)], ...steps, ["id", node.component]], note);
}

async function showVertex(id) {
  const vertex = await answer("vertex", { id });
  const inner = vertex.groups[0];
  const { listed } = vertex;
  const paint = listed ? await showGroup(listed.component, vertex.id) : clear;
  if (listed) await showInHierarchy(listed.component);
  else if (inner || !icicle.top) await showHierarchy(inner?.component ?? null);
  return () => {
    title(`Vertex ${named(vertex.id, vertex.label)}`);
    const rows = vertex.groups.map((group) => [
      groupLink(group.component, group.k, ofLambda && group.component === listed?.component),
      number(group.vertices),
      number(group.edges),
    ]);
    const around = table("Its groups, innermost first", ["group", "vertices>", "edges>"], rows.slice(0, MOST_GROUPS));
    const more = [];
    if (rows.length > MOST_GROUPS) {
      const rest = element("details", {}, element("summary", {}, `${number(rows.length - MOST_GROUPS + vertex.larger)} more groups`));
      const left = vertex.larger ? `, without the ${number(vertex.larger)} largest` : "";
      rest.append(table(`Further groups${left}`, ["group", "vertices>", "edges>"], rows.slice(MOST_GROUPS)));
      more.push(rest);
    }
    const none = ofLambda ? "It is in no DN-graph. Its innermost group contains denser groups without it." : "It is in none of the groups of the list.";
    const where = listed ? [] : [element("p", {}, inner ? none : "It has no edges and is in no group.")];
    const own = [["λ", number(vertex.lambda)], ["degree", number(vertex.degree)], [result.measure, number(vertex.triangles)]];
    facts([...own, ...Object.entries(vertex.values).map(([name, value]) => [name, value || "none"])], ...where, ...(rows.length ? [around, ...more] : []));
    paint();
  };
}

/**
 * List the vertices with a text in their id or label. A single match, or a single match of a whole id or label, is shown itself.
 * If the text lists several ids, `group` is the innermost group that contains them all, or null.
 */
async function search(text) {
  const { found, more, group } = await answer("search", { text });
  const whole = found.filter((vertex) => vertex.whole);
  const one = whole.length === 1 ? whole[0] : found.length === 1 ? found[0] : null;
  if (one) {
    history.replaceState(null, "", address("vertex", one.id));
    return showVertex(one.id);
  }
  if (group) await showInHierarchy(group.component);
  else if (!icicle.top) await showHierarchy(null);
  return () => {
    clear();
    if (group !== undefined) title(`${number(found.length)} vertices together`);
    else title(`Vertices with “${short(text)}” in their ${result.labelled ? "id or label" : "id"}`);
    const rows = found.map((vertex) => [link("vertex", vertex.id, named(vertex.id, vertex.label)), number(vertex.lambda), number(vertex.degree)]);
    const caption = more ? `The first ${number(found.length)} matches. A longer text finds fewer.` : some(found.length, "vertex", "vertices");
    const list = table(caption, ["vertex", "λ>", "degree>"], rows);
    list.classList.add("long");
    const together = element("p", {});
    if (group) {
      const name = `${level(group.k)}: ${some(group.vertices, "vertex", "vertices")}, ${some(group.edges, "edge")}`;
      together.append("The innermost group that contains all of them: ", link(kindOf(group.dn_graph), group.component, name), ".");
    } else if (group === null) together.append("No group contains all of them: no path of edges connects them.");
    byId("facts").replaceChildren(...(group === undefined ? [] : [together]), list);
  };
}

async function showLargest() {
  const by = byId("by").value;
  const { count, largest } = await ask("largest", { by, most: 50 });
  if (by !== byId("by").value) return;
  const rows = largest.map((group) => {
    const some = group.members.ids.map((id, at) => short(group.members.labels[at] ?? id, 24)).join(", ");
    const what = element("div", {}, link(kindOf(ofLambda), group.component, level(group.k)), ` · id ${group.component}`);
    what.append(element("span", { class: "some" }, group.members.ids.length < group.vertices ? `${some}, …` : some));
    const sizes = [number(group.vertices), number(group.edges), share(group.density)];
    return [what, ...sizes, ...(ofLambda ? [number(group.triangles)] : [])];
  });
  const all = some(count, ofLambda ? "DN-graph" : "group");
  const caption = count > rows.length ? `${number(rows.length)} of ${all}` : all;
  byId("largest").dataset.by = by;
  byId("largest").replaceChildren(
    rows.length
      ? table(caption, ["group and some members", "vertices>", "edges>", "density>", ...(ofLambda ? [`${result.measure}>`] : [])], rows)
      : element("p", {}, `The graph has none: it has no ${result.measure}.${result.measure === "triangles" ? " Does each row link two kinds of things, such as people and films?" : ""}`),
  );
  const { kind, id } = chosen();
  if (isDrawn(kind)) current(id);
}

/** Whether an address selects a group with a drawing: a DN-graph, or any group of a program. */
const isDrawn = (kind) => kind === "dn-graph" || (kind === "component" && !ofLambda);

/** Move the focus to the selection if the focused element is gone, and scroll to the selection if it is out of sight. */
function reveal(kind) {
  const [section, initial] = [byId("chosen"), first];
  first = false;
  if (initial) return;
  if (document.activeElement === document.body) section.focus({ preventScroll: true });
  const { top } = section.getBoundingClientRect();
  if ((isDrawn(kind) || kind === "vertex" || kind === "search") && (top < 0 || top > innerHeight * 0.7)) section.scrollIntoView();
}

/** Replace an address that selects nothing by that of the first group, or of the graph if there is none. */
function selectDefault() {
  if (chosen().kind) return;
  history.replaceState(null, "", best === undefined ? GRAPH : address(kindOf(ofLambda), best));
}

/** Show what the address selects. */
async function show() {
  const own = ++selection;
  selectDefault();
  const { kind, id } = chosen();
  document.body.setAttribute("aria-busy", "true");
  say(kind === "graph" || (kind === "component" && ofLambda) ? "" : kind === "search" ? "Searching …" : "Reading the result …");
  try {
    let paint;
    if (isDrawn(kind)) [paint] = await Promise.all([showGroup(id), showInHierarchy(id)]);
    else if (kind === "vertex") paint = await showVertex(id);
    else if (kind === "search") paint = await search(id);
    else {
      const node = await showHierarchy(kind === "component" ? id : null);
      paint = () => showComponent(node);
    }
    if (own !== selection) return;
    byId("vertex").value = kind === "vertex" || kind === "search" ? id : "";
    paint();
    say("");
    reveal(kind);
  } catch (error) {
    if (own !== selection) return;
    failed(kind, id, error);
    if (!icicle.top) await showHierarchy(null).catch(() => {});
  } finally {
    if (own === selection) document.body.removeAttribute("aria-busy");
  }
}

/** Show the error instead of the earlier selection. */
function failed(kind, id, error) {
  clear();
  title(error.missing ? "Not found" : "Nothing to show");
  const sentence = `${error.message[0].toUpperCase()}${error.message.slice(1)}.`;
  const more = error.next?.length ? [element("p", {}, "Ids that follow: ", ...error.next.flatMap((other, at) => [at ? ", " : "", link("vertex", other, other)]))] : [];
  byId("facts").replaceChildren(element("p", {}, sentence), ...more);
  if (kind === "vertex" || kind === "search") byId("vertex").value = id;
  say(error.message);
}

/** Fill the choices of groups and of the order. Without groups of programs there is no choice of groups. */
function offer() {
  const names = { lambda: "λ", triangles: result.measure };
  const options = (values) => values.map((value) => element("option", { value }, names[value] ?? value));
  byId("by").replaceChildren(...options(result.orders));
  byId("kind").replaceChildren(...options(result.kinds));
  byId("kind").value = groups;
  byId("kinds").hidden = result.kinds.length < 2;
  if (!ofLambda) byId("largest-title").textContent = `Groups of ${groups}`;
}

/** The page with other groups. A vertex or a search stays selected. */
function choose(kind) {
  const stays = ["vertex", "search"].includes(chosen().kind) ? location.hash : "";
  location.assign(`${location.pathname}${kind === "lambda" ? "" : `?${new URLSearchParams({ groups: kind })}`}${stays}`);
}

async function begin() {
  try {
    result = await ask("result");
    offer();
    document.title = `${visible(result.name)} · edgemill explorer`;
    byId("name").textContent = visible(result.name);
    const { edges, vertices } = result;
    const listed = some(result.groups, ofLambda ? "DN-graph" : "group");
    byId("counts").textContent = `${some(vertices, "vertex", "vertices")}, ${some(edges, "edge")}, ${listed}, λ up to ${number(result.lambda)}`;
    legend(byId("legend"), result.lambda);
    if (result.labelled) byId("vertex").placeholder = "id or name, or a part";
    best = (await ask("largest", { most: 1 })).largest[0]?.component;
    await showLargest();
  } catch (error) {
    say(error.message);
    return;
  }
  addEventListener("hashchange", show);
  byId("kind").addEventListener("change", (event) => choose(event.target.value));
  byId("by").addEventListener("change", () => showLargest().catch((error) => say(error.message)));
  byId("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const hash = address("search", byId("vertex").value.trim());
    if (location.hash === hash) show();
    else location.hash = hash;
  });
  onTheme(() => {
    legend(byId("legend"), result.lambda);
    icicle.redraw();
    drawing.redraw();
  });
  await show();
}

begin();
