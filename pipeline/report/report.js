"use strict";
(async () => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const charts = [...document.querySelectorAll(".chart")];

  // Bokeh draws on its own, so it has to be told of the page's colours.
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
  for (const chart of charts) {
    const item = JSON.parse(chart.nextElementSibling.textContent);
    const views = await Bokeh.embed.embed_item(item, chart);
    roots.push(...[...views].map((view) => view.model));
  }
  const paintAll = () => {
    roots.forEach(paint);
    charts.forEach((chart) => chart.toggleAttribute("data-dark", dark.matches));
  };
  paintAll();
  dark.addEventListener("change", paintAll);
})();
