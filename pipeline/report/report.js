"use strict";
(async () => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const charts = [...document.querySelectorAll(".chart")];
  const folds = [...document.querySelectorAll("#run > details")];

  // Bokeh does not read the page's CSS, so its models get the page's colours here.
  const paint = (model) => {
    const [text, line, grid] = dark.matches ? ["#e4e8ed", "#7d8894", "#323a44"] : ["#1b1f24", "#8a939d", "#e3e7eb"];
    const colours = {
      axis_label_text_color: text, major_label_text_color: text, label_text_color: text, axis_line_color: line,
      major_tick_line_color: line, minor_tick_line_color: null,
    };
    for (const part of model.references()) {
      for (const [name, colour] of Object.entries(colours)) {
        if (name in part.properties) part[name] = colour;
      }
      if ("grid_line_color" in part.properties && part.grid_line_color != null) part.grid_line_color = grid;
    }
  };

  const roots = [];
  const draw = async (chart) => {
    if (chart.hasAttribute("data-drawn")) return;
    chart.setAttribute("data-drawn", "");
    const item = JSON.parse(chart.nextElementSibling.textContent);
    const views = [...(await Bokeh.embed.embed_item(item, chart))].map((view) => view.model);
    views.forEach(paint);
    roots.push(...views);
    chart.toggleAttribute("data-dark", dark.matches);
  };

  // A closed section has no width, so its charts are drawn when it opens.
  const within = (fold) => charts.filter((chart) => chart.closest("details") === fold).map(draw);
  folds.forEach((fold) => fold.addEventListener("toggle", () => fold.open && within(fold)));

  // A link to a closed section opens it.
  const reach = () => {
    const section = document.getElementById(location.hash.slice(1));
    if (section instanceof HTMLDetailsElement) section.open = true;
  };
  addEventListener("hashchange", reach);
  reach();
  for (const [id, open] of [["open-all", true], ["close-all", false]]) {
    document.getElementById(id).addEventListener("click", () => folds.forEach((fold) => (fold.open = open)));
  }

  // Only a table that is wider than its container shows the hint to scroll and can be reached by Tab.
  const room = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const table = target.closest(".table");
      const scrolls = table.scrollWidth > table.clientWidth + 1;
      table.toggleAttribute("data-scrolls", scrolls);
      table.tabIndex = scrolls ? 0 : -1;
      table.previousElementSibling.hidden = !scrolls;
    }
  });
  document.querySelectorAll(".table, .table > table").forEach((table) => room.observe(table));

  // Charts are not redrawn for paper. They are scaled down to its width.
  const PAPER = 680;
  addEventListener("beforeprint", () => charts.forEach((chart) => (chart.style.zoom = Math.min(1, PAPER / Math.max(1, chart.clientWidth)))));
  addEventListener("afterprint", () => charts.forEach((chart) => (chart.style.zoom = "")));

  dark.addEventListener("change", () => {
    roots.forEach(paint);
    charts.forEach((chart) => chart.toggleAttribute("data-dark", dark.matches));
  });
  for (const chart of charts) if (!chart.closest("details:not([open])")) await draw(chart);
})();
