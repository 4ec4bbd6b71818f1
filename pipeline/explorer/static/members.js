// The members of a group: the best connected ones by name, and all of them to copy or download.

import { ask, element, groups, named, names, number } from "./page.js";

const MOST = 12;

/** Elements for the members of the drawn group. `say(text, fine)` shows the outcome of copying. */
export function members({ group, members: drawn, vertices }, say) {
  const best = [...Array(drawn).keys()].sort((a, b) => vertices.edges[b] - vertices.edges[a] || a - b).slice(0, MOST);
  const copy = element("button", { type: "button", id: "copy" }, "Copy members");
  copy.addEventListener("click", async () => {
    try {
      const { ids, count } = await ask("members", { group: group.component });
      await navigator.clipboard.writeText(ids.join("\n"));
      say(`${number(ids.length)}${ids.length < count ? ` of ${number(count)}` : ""} ids were copied to the clipboard, one per line.`, true);
    } catch (error) {
      say(`Nothing was copied: ${error.message}`);
    }
  });
  const csv = element("a", { class: "button", id: "csv", href: `members.csv?${new URLSearchParams({ groups, group: group.component })}`, download: "" }, "Members as CSV");
  return [
    element("p", { class: "hint" }, group.vertices > best.length ? "Members with the most edges inside the group:" : "Members:"),
    names(best.map((at) => named(vertices.id[at], vertices.label[at])), group.vertices - best.length),
    element("p", { class: "act" }, copy, csv),
  ];
}
