// On paper: all of the page, in light colours, and no wider than a sheet.

const PAPER = 690;
const drawers = [];

/** Draws what is not in sight too, before the page is printed, and goes back after that. */
function startPaper() {
  const root = document.documentElement;
  let theme;
  addEventListener("beforeprint", () => {
    theme = root.dataset.theme;
    root.dataset.theme = "light";
    root.dataset.paper = "yes";
    drawers.forEach((draw) => draw());
    if (report.cases.length) byId("heatmap").append(heatTable(heatRows(), shownMethods()));
    // What is drawn of pictures follows in the same breath, as soon as this function has ended.
    queueMicrotask(() => queueMicrotask(shrink));
  });
  addEventListener("afterprint", () => {
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    delete root.dataset.paper;
    wide().forEach((part) => { part.style.zoom = ""; });
    byId("heatmap").querySelectorAll(".sheet").forEach((table) => table.remove());
    watchers.forEach((watch) => watch());
  });
}

/** The heat map as a table: its rows are never cut, and its head is on every sheet. */
function heatTable(rows, methods) {
  const numbers = methods.length <= 40;
  const cell = (entry, method) => {
    const rank = entry.rank[method], share = known(rank) ? 1 - (rank - 1) / Math.max(1, ranked(entry) - 1) : 0;
    const td = make("td", {}, numbers && known(rank) ? String(Math.round(rank * 2) / 2) : "");
    td.style.background = known(rank) ? colourOf(share) : themed("--absent");
    td.style.color = inkOn(share);
    return td;
  };
  const line = (row) => (row.group
    ? make("tr", {}, make("th", { class: "group", scope: "rowgroup", colspan: methods.length + 1 }, row.group))
    : make("tr", {}, make("th", { scope: "row" }, row.name), methods.map((method) => cell(report.cases[row.at], method))));
  const heads = methods.map((method) => make("th", { scope: "col" }, make("span", {}, report.methods[method].name)));
  const table = make("table", { class: "sheet" }, make("thead", {}, make("tr", {}, make("th", {}, ""), heads)), make("tbody", {}, rows.map(line)));
  table.style.width = `${115 + 24 * methods.length}px`;
  return table;
}

/** The parts that text cannot flow around. */
const wide = () => [...document.querySelectorAll(".heat, .gallery")];

function shrink() {
  for (const part of wide()) {
    part.style.zoom = "";
    const width = Math.max(part.scrollWidth, part.offsetWidth);
    if (width > PAPER) part.style.zoom = PAPER / width;
  }
}
