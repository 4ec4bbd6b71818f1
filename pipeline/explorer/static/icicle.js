// The hierarchy as an icicle plot: a component is above its children, as wide as its number of edges. Arrow keys move in it.

import { element, level, number, ofLambda, some } from "./page.js";
import { colour, css, inkOn } from "./palette.js";

const ROW = 26;
export const LEAST = 4; // pixels; narrower components share one cell

export const isDNGraph = (node) => ofLambda && node.k > 0 && node.children?.count === 0;

/** A component in words. */
export function words(node) {
  if (node.component === null) return `The whole graph: ${some(node.edges, "edge")}`;
  const steps = node.to ? `, one group up to ${level(node.to.k)}` : "";
  const kind = isDNGraph(node) ? `DN-graph, ${level(node.k)}` : `${level(node.k)}${ofLambda ? " or more" : ""}${steps}`;
  const inside = node.children && !isDNGraph(node) && (ofLambda || node.children.count) ? `; ${some(node.children.count, "group")} in it` : "";
  return `${kind}: ${some(node.vertices, "vertex", "vertices")}, ${some(node.edges, "edge")}${inside}`;
}

export class Icicle {
  /** Calls `open(node)` to go to a component, `listed()` to go to the list of small components, `up()` to go to the parent. */
  constructor(container, readout, { open, listed, up }) {
    Object.assign(this, { container, readout, open, listed, up });
    container.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.top && this.#room() !== this.width && this.#draw()).observe(container);
  }

  /** Show `node` and its descendants. `selected` is the component to mark; if it has no cell, the top one is marked. */
  show(node, most, selected) {
    Object.assign(this, { top: node, most, selected, marked: null });
    this.#draw();
  }

  /** Whether a component has a cell. */
  has(component) {
    return this.cells?.some((cell) => cell.node?.component === component) ?? false;
  }

  mark(component) {
    this.selected = component;
    this.marked = null;
    this.redraw();
  }

  redraw() {
    if (this.top) this.#draw();
  }

  /** The width for cells, without the padding, which leaves room for their outlines. */
  #room() {
    const { paddingLeft, paddingRight } = getComputedStyle(this.container);
    return this.container.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
  }

  #draw() {
    const had = this.container.contains(document.activeElement);
    const at = this.marked; // at another width it may have no cell
    this.width = this.#room();
    this.cells = [];
    this.#place(this.top, null, 0, this.width, 1, 1, 1);
    const rows = Math.max(...this.cells.map((cell) => cell.level));
    const inner = element("div", { class: "rows", role: "presentation" }, ...this.cells.map((cell) => cell.element));
    inner.style.height = `${rows * ROW}px`;
    this.container.replaceChildren(inner);
    const again = at && this.cells.find((cell) => this.#component(cell) === this.#component(at) && cell.rest === at.rest);
    const marked = this.cells.find((cell) => cell.node && cell.node.component === this.selected) ?? this.cells[0];
    this.#mark(again ?? marked, had);
  }

  /** The component of a cell, or of its parent for a cell of small components. */
  #component(cell) {
    return (cell.node ?? cell.parent.node).component;
  }

  #place(node, parent, left, width, level, position, siblings) {
    const cell = { node, parent, level, below: [] };
    cell.element = this.#element(cell, words(node), left, width, position, siblings);
    if (node.component !== null && ofLambda) { // levels of programs have no colours: those of the page are of λ
      const rgb = colour(node.k, this.most);
      cell.element.style.background = css(rgb);
      cell.element.style.color = inkOn(rgb);
    }
    if (width > (isDNGraph(node) ? 48 : 34)) cell.element.textContent = this.#label(node, width);
    this.#add(cell);
    const { count, largest } = node.children ?? { count: 0, largest: [] };
    if (!largest.length) return;
    let [at, shown] = [left, 0];
    for (const child of largest) {
      const share = (width * child.edges) / node.edges;
      if (share < LEAST) break;
      this.#place(child, cell, at, share, level + 1, ++shown, count);
      at += share;
    }
    if (shown < count) this.#rest(cell, at, left + width, level + 1, count - shown, (width * node.children.edges) / node.edges);
  }

  #rest(parent, at, right, level, count, all) {
    const width = Math.max(LEAST, all - (at - (right - parent.width)));
    const cell = { rest: true, parent, level, below: [] };
    const label = `${some(count, "smaller group")}, too small to draw here`;
    cell.element = this.#element(cell, label, Math.min(at, right - width), width, 0, 0);
    cell.element.classList.add("rest");
    if (width > 50) cell.element.textContent = `${number(count)} more`;
    this.#add(cell);
  }

  #element(cell, label, left, width, position, siblings) {
    cell.width = width;
    cell.label = label;
    const made = element("div", {
      role: "treeitem",
      tabindex: "-1",
      "aria-label": label,
      "aria-level": cell.level,
      "aria-posinset": position || null,
      "aria-setsize": siblings || null,
      "aria-expanded": cell.node?.children?.largest.length ? "true" : null,
      title: label,
    });
    made.style.left = `${left}px`;
    made.style.width = `${Math.max(width - 1, 1)}px`;
    made.style.top = `${(cell.level - 1) * ROW}px`;
    made.addEventListener("click", () => this.#enter(cell));
    made.addEventListener("focus", () => this.#mark(cell, false));
    return made;
  }

  #label(node, width) {
    if (node.component === null) return words(node);
    const mark = isDNGraph(node) ? "◆ " : "";
    const sizes = `${number(node.vertices)} v, ${number(node.edges)} e`;
    if (width > 170) return `${mark}${level(node.k, node.to?.k)} · ${sizes}`;
    const range = node.to ? `${number(node.k)}–${number(node.to.k)}` : number(node.k);
    return `${mark}${width > 60 ? range : number(node.k)}`;
  }

  #add(cell) {
    this.cells.push(cell);
    cell.parent?.below.push(cell);
  }

  #mark(cell, focus) {
    this.marked?.element.removeAttribute("aria-selected");
    this.marked?.element.setAttribute("tabindex", "-1");
    this.marked = cell;
    cell.element.setAttribute("aria-selected", "true");
    cell.element.setAttribute("tabindex", "0");
    this.readout.textContent = cell.label;
    if (focus) cell.element.focus();
  }

  #enter(cell) {
    if (cell.rest && cell.parent === this.cells[0]) this.listed();
    else if (cell.rest) this.open(cell.parent.node);
    else if (cell === this.cells[0]) this.up();
    else this.open(cell.node);
  }

  #key(event) {
    const cell = this.marked;
    const beside = cell.parent?.below ?? [cell];
    const at = beside.indexOf(cell);
    const to = {
      ArrowDown: () => cell.below[0],
      ArrowUp: () => cell.parent,
      ArrowLeft: () => beside[at - 1],
      ArrowRight: () => beside[at + 1],
      Home: () => beside[0],
      End: () => beside.at(-1),
    }[event.key];
    if (to) to()?.element.focus();
    else if (event.key === "Enter" || event.key === " ") this.#enter(cell);
    else if (event.key === "Escape" || event.key === "Backspace") this.up();
    else return;
    event.preventDefault();
  }
}
