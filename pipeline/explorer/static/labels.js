// Names of vertices in a drawing. A name is beside, above or below its vertex, where it covers no other name or vertex.

import { background, css, ink } from "./palette.js";

const CELL = 64; // pixels
const GAP = 3;

export class Labels {
  /** `sigma()` returns the renderer whose vertices must stay uncovered. */
  constructor(sigma) {
    Object.assign(this, { sigma, widths: new Map(), cells: null });
    this.draw = this.draw.bind(this);
  }

  /** Start a new frame without names. */
  begin() {
    this.cells = null;
  }

  /** Draw the name of a vertex if there is room. Sigma calls this for each vertex, most important first. */
  draw(context, node, settings) {
    if (!node.label || !this.sigma()) return; // sigma draws once during its construction
    if (!this.cells) this.#obstacles();
    const high = settings.labelSize + 2;
    context.font = `${settings.labelWeight} ${settings.labelSize}px ${settings.labelFont}`;
    const wide = this.#width(context, node.label);
    const box = this.#positions(node, wide, high).find((position) => this.#free(position, node.key));
    if (!box) return;
    this.#add(box);
    context.lineWidth = 3;
    context.lineJoin = "round";
    context.strokeStyle = css(background());
    context.fillStyle = ink();
    const [left, line] = [box.left, box.top + settings.labelSize - 1];
    context.strokeText(node.label, left, line); // a border, so that edges do not cross the letters
    context.fillText(node.label, left, line);
  }

  #width(context, text) {
    if (!this.widths.has(text)) this.widths.set(text, Math.ceil(context.measureText(text).width));
    return this.widths.get(text);
  }

  #positions({ x, y, size }, wide, high) {
    const away = size + GAP;
    return [
      [x + away, y - high / 2],
      [x - away - wide, y - high / 2],
      [x - wide / 2, y - away - high],
      [x - wide / 2, y + away],
    ].map(([left, top]) => ({ left, top, right: left + wide, bottom: top + high }));
  }

  #free(box, key) {
    const { width, height } = this.sigma().getDimensions();
    if (box.left < 0 || box.top < 0 || box.right > width || box.bottom > height) return false;
    for (const cell of this.#covered(box)) {
      for (const other of this.cells.get(cell) ?? []) {
        if (other.key === key) continue;
        if (box.left < other.right && box.right > other.left && box.top < other.bottom && box.bottom > other.top) return false;
      }
    }
    return true;
  }

  #obstacles() {
    this.cells = new Map();
    const sigma = this.sigma();
    sigma.getGraph().forEachNode((key) => {
      const node = sigma.getNodeDisplayData(key);
      if (!node || node.hidden || !node.label) return; // faded vertices have no name
      const { x, y } = sigma.framedGraphToViewport(node);
      const size = sigma.scaleSize(node.size);
      this.#add({ key, left: x - size, right: x + size, top: y - size, bottom: y + size });
    });
  }

  #add(box) {
    for (const cell of this.#covered(box)) {
      if (this.cells.has(cell)) this.cells.get(cell).push(box);
      else this.cells.set(cell, [box]);
    }
  }

  *#covered({ left, top, right, bottom }) {
    for (let column = Math.floor(left / CELL); column <= right / CELL; column++) {
      for (let row = Math.floor(top / CELL); row <= bottom / CELL; row++) yield `${column} ${row}`;
    }
  }
}
