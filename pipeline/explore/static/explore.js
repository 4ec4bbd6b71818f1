// The page: what the address after # chooses is asked of the server and shown.

import { Drawing } from "./drawing.js";
import { Icicle, LEAST, isDNGraph } from "./icicle.js";
import { address, ask, byId, chosen, element, link, number, share, some, table, visible } from "./page.js";
import { legend, onTheme } from "./palette.js";

const DEPTH = 16;
const BRANCHES = 8;
const MOST_GROUPS = 12;

let result;
let above = [];
let first = true;
let turn = 0; // counts what was chosen: answers for what was chosen before come too late

const drawing = new Drawing();
const icicle = new Icicle(byId("icicle"), byId("readout"), {
  open: (node) => goTo(isDNGraph(node) ? "dn-graph" : "component", (node.children ? node : (node.to ?? node)).component),
  listed: () => byId("inside").querySelector("a, button")?.focus(),
  up: () => {
    if (icicle.top.component !== null) above.length ? goTo("component", above.at(-1).component) : (location.hash = "");
  },
});

function goTo(kind, id) {
  location.hash = address(kind, id);
}

function say(text) {
  byId("status").textContent = visible(text);
}

/** The answer to a question, unless something else was chosen meanwhile. */
async function answer(question, parameters) {
  const mine = turn;
  const said = await ask(question, parameters);
  if (mine !== turn) throw new Error("something else was chosen");
  return said;
}

/** Show the hierarchy below a component (null: all of it), with one in it marked. */
async function showHierarchy(component, marked) {
  const { path, node } = await answer("hierarchy", { depth: DEPTH, most: 100, ...(component === null ? {} : { component }) });
  above = path;
  const steps = [element("a", { href: "#" }, "graph"), ...path.map((step) => link("component", step.component, `λ ${number(step.k)}`))];
  const shown = steps.length > 7 ? [...steps.slice(0, 2), "…", ...steps.slice(-4)] : steps;
  const here = node.component === null ? [] : [element("span", { "aria-current": "true" }, `λ ${number(node.k)}`)];
  byId("path").replaceChildren(...[...(here.length ? shown : []), ...here].map((step) => element("li", {}, step)));
  icicle.show(node, result.lambda, marked);
  const { count, largest } = node.children;
  const rows = largest.map((child) => [
    link(isDNGraph(child) ? "dn-graph" : "component", child.component, isDNGraph(child) ? `DN-graph, λ ${number(child.k)}` : `λ ${number(child.k)}`),
    number(child.vertices),
    number(child.edges),
  ]);
  const caption = count > largest.length ? `The ${number(largest.length)} largest of ${some(count, "group")} in it` : `${some(count, "group")} in it, the largest first`;
  byId("inside").replaceChildren(...(rows.length ? [table(caption, ["group", "vertices>", "edges>"], rows)] : []));
  return node;
}

/** Show where a DN-graph is in the hierarchy: where it is seen already, or as far above as it is wide enough to see. */
async function showPlace(id) {
  if (icicle.has(id)) return icicle.mark(id);
  const { path, node } = await answer("hierarchy", { component: id });
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

const ofDNGraph = (group) => [
  ["λ", number(group.lambda)],
  ["vertices", number(group.vertices)],
  ["edges", number(group.edges)],
  ["density", share(group.density)],
  ["triangles", number(group.triangles)],
  ["id", group.id],
];

async function showDNGraph(id, vertex) {
  const drawn = await answer("drawing", { dn_graph: id });
  return () => {
    if (vertex === undefined) {
      title(`DN-graph of ${some(drawn.dn_graph.vertices, "vertex", "vertices")}`);
      facts(ofDNGraph(drawn.dn_graph));
    }
    drawing.show(drawn, result.lambda, vertex);
  };
}

function showComponent(node) {
  drawing.hide();
  if (node.component === null) {
    title("The whole graph");
    facts([["edges", number(result.edges)], ["vertices", number(result.vertices)], ["DN-graphs", number(result.dn_graphs)]]);
    return;
  }
  title(`A group of λ ${number(node.k)}`);
  const inner = node.to ?? node;
  const steps = node.to ? [["becomes at λ " + number(inner.k), `${some(inner.vertices, "vertex", "vertices")}, ${some(inner.edges, "edge")}`]] : [];
  const note = element("p", {}, `All its edges have λ ${number(node.k)} or more. Choose a DN-graph in it to see it drawn.`);
  facts([["λ", number(node.k)], ["vertices", number(node.vertices)], ["edges", number(node.edges)], ...steps, ["id", node.component]], note);
}

async function showVertex(id) {
  const vertex = await answer("vertex", { id });
  const inner = vertex.groups[0];
  const paint = vertex.dn_graph ? await showDNGraph(vertex.dn_graph.id, vertex.id) : () => drawing.hide();
  if (vertex.dn_graph) await showPlace(vertex.dn_graph.id);
  else if (inner || !icicle.top) await showHierarchy(inner?.component ?? null);
  return () => {
    title(`Vertex ${vertex.id}`);
    const rows = vertex.groups.map((group, at) => {
      const dn = at === 0 && vertex.dn_graph;
      return [link(dn ? "dn-graph" : "component", group.component, dn ? `DN-graph, λ ${number(group.k)}` : `λ ${number(group.k)}`), number(group.vertices), number(group.edges)];
    });
    const groups = table("Its groups, innermost first", ["group", "vertices>", "edges>"], rows.slice(0, MOST_GROUPS));
    const more = [];
    if (rows.length > MOST_GROUPS) {
      const rest = element("details", {}, element("summary", {}, `${number(rows.length - MOST_GROUPS + vertex.larger)} more groups`));
      const left = vertex.larger ? `, without the ${number(vertex.larger)} largest` : "";
      rest.append(table(`Further groups${left}`, ["group", "vertices>", "edges>"], rows.slice(MOST_GROUPS)));
      more.push(rest);
    }
    const where = vertex.dn_graph ? [] : [element("p", {}, inner ? "It is in no DN-graph: denser groups lie beside it." : "It has no edges, and is in no group.")];
    facts([["λ", number(vertex.lambda)], ["degree", number(vertex.degree)], ["triangles", number(vertex.triangles)]], ...where, ...(rows.length ? [groups, ...more] : []));
    paint();
  };
}

async function showLargest() {
  const by = byId("by").value;
  const { count, largest } = await ask("dn-graphs", { by, most: 50 });
  if (by !== byId("by").value) return;
  const rows = largest.map((group) => [
    link("dn-graph", group.id, `λ ${number(group.lambda)}`),
    number(group.vertices),
    number(group.edges),
    share(group.density),
    number(group.triangles),
  ]);
  const caption = count > rows.length ? `${number(rows.length)} of ${some(count, "DN-graph")}` : some(count, "DN-graph");
  byId("largest").replaceChildren(table(caption, ["DN-graph", "vertices>", "edges>", "density>", "triangles>"], rows));
}

/** Where the eye and the keyboard are needed next, if what was chosen is not in sight, or what had the focus is gone. */
function lead(kind) {
  const [section, begins] = [byId("chosen"), first];
  first = false;
  if (begins) return;
  if (document.activeElement === document.body) section.focus({ preventScroll: true });
  const { top } = section.getBoundingClientRect();
  if ((kind === "dn-graph" || kind === "vertex") && (top < 0 || top > innerHeight * 0.7)) section.scrollIntoView();
}

/** What is in the address, on the page. */
async function show() {
  const mine = ++turn;
  const { kind, id } = chosen();
  document.body.setAttribute("aria-busy", "true");
  say(kind === "component" || !kind ? "" : "Reading the result …");
  try {
    let paint;
    if (kind === "dn-graph") [paint] = await Promise.all([showDNGraph(id), showPlace(id)]);
    else if (kind === "vertex") paint = await showVertex(id);
    else {
      const node = await showHierarchy(kind === "component" ? id : null);
      paint = () => (kind === "component" || byId("facts").dataset.used ? showComponent(node) : null);
    }
    if (mine !== turn) return;
    if (kind) byId("facts").dataset.used = "yes";
    if (kind === "vertex") byId("vertex").value = id;
    paint();
    say("");
    lead(kind);
  } catch (error) {
    if (mine !== turn) return;
    say(error.message);
    if (error.next?.length) byId("status").append(". Next: ", ...error.next.flatMap((other, at) => [at ? ", " : "", link("vertex", other, other)]));
    if (!icicle.top) await showHierarchy(null).catch(() => {});
  } finally {
    if (mine === turn) document.body.removeAttribute("aria-busy");
  }
}

async function begin() {
  try {
    result = await ask("result");
    document.title = `${visible(result.name)} · edgemill explorer`;
    byId("name").textContent = visible(result.name);
    const { edges, vertices, dn_graphs: groups } = result;
    byId("counts").textContent = `${some(vertices, "vertex", "vertices")}, ${some(edges, "edge")}, ${some(groups, "DN-graph")}, λ up to ${number(result.lambda)}`;
    legend(byId("legend"), result.lambda);
    await showLargest();
  } catch (error) {
    say(error.message);
    return;
  }
  addEventListener("hashchange", show);
  byId("by").addEventListener("change", () => showLargest().catch((error) => say(error.message)));
  byId("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const wanted = address("vertex", byId("vertex").value);
    if (location.hash === wanted) show();
    else location.hash = wanted;
  });
  onTheme(() => {
    legend(byId("legend"), result.lambda);
    icicle.redraw();
    drawing.redraw();
  });
  await show();
}

begin();
