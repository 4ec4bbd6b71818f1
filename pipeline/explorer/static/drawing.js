// The drawing of a group by sigma.js. The server computes the positions.

import { Labels } from "./labels.js";
import { byId, element, level, link, named, number, ofLambda, short, some, table } from "./page.js";
import { background, colour, css, ink } from "./palette.js";

const STEP = 0.08; // share of the drawing that an arrow key moves
const LETTERS = 24; // longest name in the drawing

export class Drawing {
  constructor() {
    Object.assign(this, { box: byId("drawing"), canvas: byId("canvas"), picked: byId("picked"), most: 1 });
    this.labels = new Labels(() => this.sigma);
    byId("zoom-in").addEventListener("click", () => this.#camera((camera) => camera.animatedZoom({ duration: 120 })));
    byId("zoom-out").addEventListener("click", () => this.#camera((camera) => camera.animatedUnzoom({ duration: 120 })));
    byId("whole").addEventListener("click", () => this.#camera((camera) => camera.animatedReset({ duration: 120 })));
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
    byId("listed").addEventListener("toggle", () => this.#list());
  }

  hide() {
    this.#end();
    this.box.hidden = true;
  }

  /** Draw the server's answer. `vertex` is the id of a vertex to select. */
  show(drawn, most, vertex) {
    Object.assign(this, { drawn, most });
    this.box.hidden = false;
    const { members, vertices, group } = drawn;
    const label = `Drawing of a ${ofLambda ? "DN-graph" : "group"} of ${level(group.k)}: ${some(members, "vertex", "vertices")} of it inside a circle`;
    this.canvas.setAttribute("aria-label", `${label}, ${some(vertices.id.length - members, "neighbour")} around it`);
    byId("notices").replaceChildren(...drawn.notices.map((notice) => element("li", {}, notice)));
    this.near = undefined;
    this.#paint();
    const at = vertex === undefined ? -1 : vertices.id.indexOf(vertex);
    this.#pick(at < 0 ? null : at);
    byId("listed").open = false;
    this.#list();
  }

  redraw() {
    if (this.sigma) this.#paint();
  }

  #end() {
    this.sigma?.kill();
    this.sigma = null;
  }

  #paint() {
    this.#end();
    try {
      this.sigma = new Sigma(this.#graph(), this.canvas, this.#settings());
    } catch (error) {
      this.canvas.replaceChildren(element("p", { class: "message" }, `This browser cannot show the drawing (${error.message}). The list below has all vertices.`));
      return;
    }
    this.sigma.on("beforeRender", () => this.labels.begin());
    this.sigma.scheduleRender(); // draws the names
    this.sigma.on("clickNode", ({ node }) => this.#pick(Number(node)));
    this.sigma.on("clickStage", () => this.#pick(null));
  }

  #graph() {
    const { members, own_edges: own, vertices, edges } = this.drawn;
    const graph = new graphology.Graph({ type: "undirected" });
    const size = this.#size();
    const best = Math.max(1, ...vertices.edges.slice(0, members));
    vertices.id.forEach((id, at) => {
      const inside = at < members;
      graph.addNode(at, {
        x: vertices.x[at],
        y: vertices.y[at],
        label: short(vertices.label[at] ?? id, LETTERS),
        size: inside ? size * (0.9 + (0.1 * vertices.edges[at]) / best) : Math.max(size * 0.6, 2), // sigma places the names of large vertices first
        color: css(colour(vertices.lambda[at], this.most)),
        forceLabel: false,
      });
    });
    // Edges are paler in a drawing with more edges per vertex.
    const strength = Math.min(Math.max(2.2 / Math.sqrt(own / members), 0.22), 0.8);
    for (const [first, end, share] of [[own, edges.source.length, 0.28], [0, own, strength]]) {
      for (let edge = first; edge < end; edge++) {
        const color = css(colour(edges.lambda[edge], this.most), share);
        graph.addEdge(edges.source[edge], edges.target[edge], { color, size: 1 });
      }
    }
    return graph;
  }

  /** Radius of a vertex of the group, in pixels. */
  #size() {
    const narrow = Math.min(1, this.canvas.clientWidth / 600);
    return Math.min(Math.max((60 * narrow) / Math.sqrt(this.drawn.members), 2), 9 * narrow);
  }

  #settings() {
    return {
      allowInvalidContainer: true,
      labelColor: { color: ink() },
      labelFont: "system-ui, sans-serif",
      labelSize: 12,
      labelRenderedSizeThreshold: 0.85 * this.#size(),
      labelGridCellSize: 60,
      labelDensity: 4,
      minEdgeThickness: 1,
      zIndex: true,
      hideEdgesOnMove: this.drawn.edges.source.length > 5000,
      stagePadding: 24,
      defaultDrawNodeLabel: this.labels.draw,
      defaultDrawNodeHover: drawHover,
      nodeReducer: (node, shown) => this.#reduced(node, shown),
      edgeReducer: (edge, shown) => {
        if (this.near === undefined) return shown;
        const touches = this.sigma?.getGraph().extremities(edge).includes(String(this.selected));
        return touches ? { ...shown, color: ink(), size: 1.5, zIndex: 1 } : { ...shown, color: css(background()), zIndex: 0 };
      },
    };
  }

  #reduced(node, shown) {
    if (this.near === undefined) return shown;
    if (Number(node) === this.selected) return { ...shown, highlighted: true, zIndex: 2 };
    return this.near.has(node) ? { ...shown, zIndex: 1 } : { ...shown, color: css(hexed(shown.color), 0.25), label: null, zIndex: 0 };
  }

  /** Select the vertex with this index, or none for null. */
  #pick(at) {
    const before = this.near;
    this.selected = at;
    this.near = at === null || !this.sigma ? undefined : new Set(this.sigma.getGraph().neighbors(String(at)));
    if (this.near !== before) this.sigma?.refresh({ skipIndexation: true });
    if (at === null) {
      this.picked.replaceChildren("Select a vertex in the drawing to see its edges.");
      return;
    }
    const { members, vertices } = this.drawn;
    const [id, lambda, edges] = [vertices.id[at], vertices.lambda[at], vertices.edges[at]];
    const group = ofLambda ? "DN-graph" : "group";
    const where = at < members ? `in the ${group}, with ${some(edges, "edge")} inside it` : `outside the ${group}, with ${some(edges, "edge")} to it of λ ${number(lambda)} or less`;
    this.picked.replaceChildren("Vertex ", link("vertex", id, named(id, vertices.label[at])), `: ${where}.`);
  }

  #list() {
    const listed = byId("listed");
    if (!listed.open) {
      listed.querySelector("div").replaceChildren();
      return;
    }
    const { members, vertices } = this.drawn;
    const order = [...vertices.id.keys()].sort((a, b) => (a >= members) - (b >= members) || vertices.edges[b] - vertices.edges[a] || a - b);
    const rows = order.map((at) => {
      const button = element("button", { type: "button", class: "plain" }, named(vertices.id[at], vertices.label[at]));
      button.addEventListener("click", () => this.#pick(at));
      return [button, at < members ? "inside" : "neighbour", number(vertices.lambda[at]), number(vertices.edges[at])];
    });
    listed.querySelector("div").replaceChildren(table("Vertices drawn", ["vertex", "where", "λ>", "edges>"], rows));
  }

  #camera(move) {
    if (this.sigma) move(this.sigma.getCamera());
  }

  #key(event) {
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (move) {
      this.#camera((camera) => {
        const { x, y, ratio } = camera.getState();
        camera.setState({ x: x + move[0] * STEP * ratio, y: y + move[1] * STEP * ratio });
      });
    } else if (event.key === "+" || event.key === "=") byId("zoom-in").click();
    else if (event.key === "-") byId("zoom-out").click();
    else if (event.key === "0") byId("whole").click();
    else return;
    event.preventDefault();
  }
}

const hexed = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));

/** Draw a label in a box with the page's colours. Sigma's own box is white on a dark page too. */
function drawHover(context, node, settings) {
  context.font = `${settings.labelWeight} ${settings.labelSize}px ${settings.labelFont}`;
  const text = typeof node.label === "string" ? node.label : "";
  const [left, high] = [node.x + node.size + 4, settings.labelSize + 8];
  context.fillStyle = css(background());
  context.strokeStyle = ink();
  context.lineWidth = 1;
  context.beginPath();
  context.arc(node.x, node.y, node.size + 2, 0, 2 * Math.PI);
  context.stroke();
  if (!text) return;
  context.beginPath();
  context.rect(left, node.y - high / 2, context.measureText(text).width + 10, high);
  context.fill();
  context.stroke();
  context.fillStyle = ink();
  context.fillText(text, left + 5, node.y + settings.labelSize / 3);
}
