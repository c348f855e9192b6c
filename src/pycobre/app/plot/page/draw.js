"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const palette = ["#1769aa", "#d9822b", "#2f9e63", "#a23b72", "#6b7c93", "#c0392b", "#7d5ba6", "#0f8b8d", "#b8860b"];
const phone = window.matchMedia("(max-width: 760px)").matches;

function layout(x, y, more = {}) {
  const axis = { gridcolor: color("--line"), zerolinecolor: color("--line"), automargin: true, ticks: "outside",
    ticklen: 5, tickcolor: "rgba(0,0,0,0)" };
  return Object.assign({
    margin: { l: 8, r: 12, t: 8, b: 8 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: color("--ink"), size: phone ? 11 : 12, family: "system-ui, sans-serif" },
    xaxis: Object.assign({ title: { text: x, standoff: 6 } }, axis), yaxis: Object.assign({ title: { text: y, standoff: 10 } }, axis),
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" }, hovermode: "x unified", hoverlabel: { namelength: -1 },
  }, more);
}

function draw(id, traces, shape) {
  const section = document.getElementById(id);
  if (traces.length === 0) { section.remove(); return; }
  Plotly.react(section.querySelector(".plot"), traces, shape, { responsive: true, displaylogo: false, displayModeBar: false });
}

// Puts a choice beside a section's heading, shows the first option and redraws when another is chosen.
function choose(id, options, show) {
  const heading = document.querySelector(`#${id} h2`), head = document.createElement("div"), choice = document.createElement("select");
  head.className = "head";
  heading.replaceWith(head);
  head.append(heading, choice);
  choice.setAttribute("aria-label", heading.textContent);
  options.forEach((option, i) => choice.append(new Option(option, i)));
  choice.addEventListener("change", () => show(Number(choice.value)));
  show(0);
}

// The first policies cost many times the last one: where that hides the end, the picture opens on the end.
function convergence() {
  const c = data.convergence, x = c.iteration || [];
  if (x.length === 0) { draw("convergence", []); return; }
  const range = (from) => {
    const low = [], high = [];
    c.upper_bound.forEach((u, i) => {
      if (i < from || u === null || c.lower_bound[i] === null) return;
      const h = c.upper_bound_half_width[i] || 0;
      low.push(c.lower_bound[i], u - h);
      high.push(c.lower_bound[i], u + h);
    });
    const bottom = Math.min(...low), top = Math.max(...high), pad = .06 * (top - bottom || Math.abs(top) || 1);
    return [bottom - pad, top + pad];
  };
  const from = Math.floor(x.length / 4), late = range(from), all = range(0);
  const hidden = x.length >= 8 && all[1] - all[0] > 2.5 * (late[1] - late[0]);
  const show = (i) => drawConvergence(c, x, hidden && i === 0 ? late : all);
  if (hidden) choose("convergence", [`scale of iterations ${x[from]}–${x[x.length - 1]}`, "scale of all iterations"], show);
  else show(0);
}

function drawConvergence(c, x, range) {
  const half = c.upper_bound_half_width.map((h) => h || 0);
  const edge = (sign) => c.upper_bound.map((u, i) => u + sign * half[i]);
  const none = { mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false, x };
  const [mean, bound] = data.maximise ? ["lower", "upper"] : ["upper", "lower"];
  draw("convergence", [
    Object.assign({ y: edge(-1) }, none),
    Object.assign({ y: edge(1), fill: "tonexty", fillcolor: "rgba(217,130,43,.18)" }, none, { showlegend: true, name: "95 % interval" }),
    { x, y: c.upper_bound, name: `${mean} bound (mean of the pass)`, mode: "lines", line: { color: palette[1], width: 1.2 } },
    { x, y: c.lower_bound, name: `${bound} bound`, mode: "lines", line: { color: color("--water"), width: 2.4 } },
  ], layout("iteration", "cost ($)", { yaxis: Object.assign(layout("", "cost ($)").yaxis, { range }),
    xaxis: Object.assign(layout("iteration", "").xaxis, x.length < 10 ? { dtick: 1 } : {}) }));  // no half iterations
}

function costs() {
  if (data.costs.length === 0) { draw("costs", []); return; }
  const mean = data.costs.reduce((a, b) => a + b, 0) / data.costs.length;
  const line = { type: "line", x0: mean, x1: mean, yref: "paper", y0: 0, y1: 1, line: { color: palette[1], width: 2, dash: "dot" } };
  const note = { x: mean, yref: "paper", y: 1, text: "mean", showarrow: false, yanchor: "bottom", font: { color: palette[1] } };
  draw("costs", [{ x: data.costs, type: "histogram", marker: { color: color("--water"), opacity: .8 }, name: "scenarios" }],
    layout("total discounted cost ($)", "scenarios", { shapes: [line], annotations: [note], hovermode: "closest", bargap: .03,
      margin: { l: 8, r: 12, t: 24, b: 8 } }));
}

function parts() {
  draw("parts", Object.keys(data.parts).map((name, i) => (
    { x: data.stages, y: data.parts[name], type: "bar", name: name.replaceAll("_", " "), marker: { color: palette[i % palette.length] } })),
  layout("stage", "cost ($)", { barmode: "relative" }));
}

function band(entity, unit) {
  const [q05, q25, q50, q75, q95] = entity.q, x = data.stages;
  const area = (low, high, alpha, name) => [
    { x, y: low, mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false },
    { x, y: high, mode: "lines", line: { width: 0 }, fill: "tonexty", fillcolor: `rgba(23,105,170,${alpha})`, name, hoverinfo: "skip" },
  ];
  return [...area(q05, q95, .16, "5–95 %"), ...area(q25, q75, .32, "25–75 %"),
    { x, y: q50, mode: "lines+markers", name: "median", line: { color: color("--water"), width: 2.2 }, marker: { size: 5 },
      customdata: x.map((_, i) => [q05[i], q25[i], q75[i], q95[i]]),
      hovertemplate: `median %{y:,.4~g} ${unit}<br>25–75 %: %{customdata[1]:,.4~g} – %{customdata[2]:,.4~g}`
        + `<br>5–95 %: %{customdata[0]:,.4~g} – %{customdata[3]:,.4~g}<extra></extra>` }];
}

function bands(id, entities, unit, title) {
  if (entities.length === 0) { draw(id, []); return; }
  const shape = layout("stage", title);
  Object.assign(shape.yaxis, { rangemode: "tozero", exponentformat: "none", separatethousands: true });
  choose(id, entities.map((entity) => entity.name), (i) => draw(id, band(entities[i], unit), shape));
}

function timing() {
  const t = data.timing, x = (t.rank || []).map((r) => `rank ${r}`);
  const parts = [["solve_s", "LP solver", 2], ["communicate_s", "communicate", 0], ["wait_s", "wait", 1], ["other_s", "other", 4]];
  draw("timing", x.length === 0 ? [] : parts.map(([key, name, i]) => (
    { y: x, x: t[key], type: "bar", orientation: "h", name, marker: { color: palette[i] } })),
  layout("seconds", "", { barmode: "stack", hovermode: "y unified",
    legend: Object.assign(layout("", "").legend, { traceorder: "normal" }),
    yaxis: Object.assign(layout("", "").yaxis, { autorange: "reversed" }) }));
}

// Mean and one deviation to either side, of the history and of the openings.
function moments() {
  const found = data.inflow.moments, x = data.inflow.stages;
  if (found.length === 0) { draw("moments", []); return; }
  const shape = layout("stage", "inflow (m³/s)");
  shape.yaxis.exponentformat = "none";
  choose("moments", found.map((plant) => plant.name), (i) => {
    const traces = [];
    for (const [kind, shade, tone] of [["history", "217,130,43", palette[1]], ["openings", "23,105,170", color("--water")]]) {
      const [mean, std] = found[i][kind];
      if (mean.every((value) => value === null)) continue;
      const edge = (sign) => mean.map((value, t) => value === null ? null : value + sign * std[t]);
      const none = { x, mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false };
      traces.push(Object.assign({ y: edge(-1) }, none),
        Object.assign({ y: edge(1), fill: "tonexty", fillcolor: `rgba(${shade},.2)` }, none),
        { x, y: mean, name: kind, mode: "lines", line: { color: tone, width: 2 }, customdata: std,
          hovertemplate: `${kind} %{y:,.4~g} ± %{customdata:,.4~g} m³/s<extra></extra>` });
    }
    draw("moments", traces, shape);
  });
}

function heatmap(id, z, x, y, title, limits, colors, more) {
  const shape = layout("", "", { hovermode: "closest" });
  shape.yaxis.autorange = "reversed";
  if (phone) shape.yaxis.showticklabels = shape.xaxis.showticklabels = false;
  draw(id, z.length === 0 ? [] : [Object.assign({ type: "heatmap", z, x, y, zmin: limits[0], zmax: limits[1], colorscale: colors,
    colorbar: { title: { text: title, side: "right" }, thickness: 12, outlinewidth: 0 } }, more)], shape);
}

function inflowModel() {
  const f = data.inflow, most = Math.max(1, ...f.orders.flat());
  heatmap("orders", f.orders, f.stages.slice(0, (f.orders[0] || []).length), f.plants, "order", [0, most], "Blues",
    { reversescale: false, hovertemplate: "%{y}, %{x}: order %{z}<extra></extra>", colorbar: { dtick: 1, thickness: 12, outlinewidth: 0 } });
  heatmap("correlation", f.correlation, f.plants, f.plants, "", [-1, 1], "RdBu",
    { reversescale: true, hovertemplate: "%{y}, %{x}: %{z:.2f}<extra></extra>" });
  const share = (p) => p.map((_, i) => (i + 1) / p.length);
  const curve = (p, name, i) => ({ x: p, y: share(p), name, mode: "lines", line: { color: palette[i], width: 2 } });
  draw("tests", f.whiteness.length === 0 ? [] : [
    curve(f.whiteness, "whiteness", 0), curve(f.normality, "normality", 1),
    { x: [0, 1], y: [0, 1], name: "expected", mode: "lines", hoverinfo: "skip", line: { color: palette[4], width: 1, dash: "dot" } },
  ], layout("probability of the test", "share of plants and seasons below", { hovermode: "closest" }));
}

function all() {
  convergence(); costs(); parts(); timing(); moments(); inflowModel();
}
all();
bands("storage", data.storage, "hm³", "storage (hm³)");
bands("hydro", data.hydro, "MW", "generation (MW)");
bands("thermal", data.thermal, "MW", "generation (MW)");
bands("price", data.price, "$/MWh", "marginal cost ($/MWh)");
document.body.dataset.drawn = document.querySelectorAll(".plot .main-svg").length > 0 ? "yes" : "no";
