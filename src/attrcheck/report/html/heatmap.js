// The heat map: cases x methods, coloured by rank. A canvas, so that thousands of cells stay quick.

const ROW = 17, NAMES = 130;
const heat = { rows: [], methods: [], width: 0, row: 0, column: 0, byProtocol: false };

function startHeatmap() {
  const grid = make("div", { class: "heat" },
    make("div", { class: "corner" }), make("canvas", { class: "tops" }),
    make("canvas", { class: "sides" }),
    make("canvas", {
      class: "cells", tabindex: 0, role: "application", "aria-roledescription": "heat map",
      "aria-label": "Ranks of methods in cases. Arrow keys move, Enter opens the case.",
      mousemove: (event) => pointAt(event), mouseleave: () => tip(""), click: (event) => pointAt(event) && openCell(),
      keydown: heatKey, focus: () => paintHeat(true), blur: () => { tip(""); paintHeat(); },
    }));
  const open = (at) => at && (location.hash = linkTo({ case: report.cases[at].id }));
  byId("heatmap").append(
    make("p", { class: "note" }, "Each row is a case, each column a method in the order of the board; the colour is the rank in the case, the brightest the best. Choose a cell to see curves, scores and images."),
    make("div", { class: "toolbar" },
      chooser("grouped by", [["pair", "dataset and model"], ["protocol", "protocol"]], "pair", (value) => { heat.byProtocol = value === "protocol"; layHeat(); }),
      chooser("open a case", [["", "choose"], ...report.cases.map((entry, at) => [at, entry.id])], "", open),
      colourKey("last", "first")),
    grid, make("p", { class: "note", id: "heat-said", "aria-live": "polite" }));
  const update = whenSeen(byId("heatmap"), layHeat);
  watchers.push(update);
  addEventListener("resize", update);
}

/** Rows of what is shown: a heading for each group, then its cases. */
function heatRows() {
  const key = (entry) => (heat.byProtocol ? entry.protocol : pairOf(entry));
  const name = (entry) => (heat.byProtocol ? pairOf(entry) : entry.protocol);
  const groups = new Map();
  for (const at of shownCases()) {
    const entry = report.cases[at];
    groups.set(key(entry), [...(groups.get(key(entry)) || []), { at, name: name(entry) }]);
  }
  return [...groups].flatMap(([group, rows]) => [{ group }, ...rows]);
}

function layHeat() {
  heat.rows = heatRows();
  heat.methods = shownMethods();
  heat.row = Math.max(0, heat.rows.findIndex((row) => known(row.at)));
  heat.column = 0;
  const room = byId("heatmap").clientWidth - NAMES - 60;
  heat.width = Math.max(13, Math.min(30, Math.floor(room / (heat.methods.length || 1))));
  paintHeat();
}

/** A canvas of so many CSS pixels, sharp on any screen. */
function sized(canvas, width, height) {
  const scale = Math.min(2, devicePixelRatio || 1);
  canvas.width = Math.max(1, width * scale);
  canvas.height = Math.max(1, height * scale);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  return context;
}

/** Text cut to a width, with an ellipsis. */
function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let length = text.length;
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > width) length -= 1;
  return `${text.slice(0, length)}…`;
}

function paintHeat(focused = false) {
  const [, tops, sides, cells] = byId("heatmap").querySelector(".heat").children;
  const { rows, methods, width } = heat;
  paintTops(sized(tops, width * methods.length + 50, NAMES), methods, width);
  paintSides(sized(sides, NAMES + 10, ROW * rows.length), rows);
  const context = sized(cells, width * methods.length + 50, ROW * rows.length);
  const absent = themed("--absent"), numbers = width >= 20 && rows.length * methods.length < 8000;
  context.font = "10px system-ui, sans-serif";
  context.textAlign = "center";
  rows.forEach((row, y) => {
    if (!known(row.at)) return;
    const entry = report.cases[row.at], most = Math.max(1, ranked(entry) - 1);
    methods.forEach((method, x) => {
      const rank = entry.rank[method], share = known(rank) ? 1 - (rank - 1) / most : 0;
      context.fillStyle = known(rank) ? colourOf(share) : absent;
      context.fillRect(x * width, y * ROW, width - 1, ROW - 1);
      if (numbers && known(rank)) {
        context.fillStyle = inkOn(share);
        context.fillText(String(Math.round(rank * 2) / 2), x * width + width / 2 - 0.5, y * ROW + ROW / 2);
      }
    });
  });
  if (focused) {
    context.strokeStyle = "#d55e00";
    context.lineWidth = 3;
    context.strokeRect(heat.column * width - 1, heat.row * ROW - 1, width + 1, ROW + 1);
  }
}

function paintTops(context, methods, width) {
  const [plain, good] = [themed("--ink"), themed("--good")];
  methods.forEach((method, x) => {
    const { name, own } = report.methods[method];
    context.save();
    context.translate(x * width + width / 2, NAMES - 4);
    context.rotate(-Math.PI / 3);
    context.fillStyle = own ? good : plain;
    context.fillText(fitted(context, own ? `★ ${name}` : name, NAMES), 0, 0);
    context.restore();
  });
}

function paintSides(context, rows) {
  const [ink, soft] = [themed("--ink"), themed("--soft")];
  rows.forEach((row, y) => {
    context.fillStyle = row.group ? ink : soft;
    context.font = `${row.group ? "bold " : ""}11px system-ui, sans-serif`;
    context.fillText(fitted(context, row.group || row.name, NAMES), row.group ? 4 : 10, y * ROW + ROW / 2);
  });
}

const cellText = () => {
  const row = heat.rows[heat.row], method = heat.methods[heat.column];
  if (!row || !known(row.at) || !known(method)) return "";
  const entry = report.cases[row.at], note = entry.notes[method];
  const said = note ? note.join(": ") : `rank ${entry.rank[method]} of ${ranked(entry)}, score ${number(entry.score[method])}`;
  return `${report.methods[method].name} in ${entry.id}\n${said}`;
};

/** Notes the cell under the pointer; whether there is one. */
function pointAt(event) {
  const box = event.target.getBoundingClientRect();
  heat.row = Math.floor((event.clientY - box.top) / ROW);
  heat.column = Math.floor((event.clientX - box.left) / heat.width);
  const text = cellText();
  tip(text, event);
  return Boolean(text);
}

function openCell() {
  tip("");
  const entry = report.cases[heat.rows[heat.row].at];
  location.hash = linkTo({ case: entry.id, method: report.methods[heat.methods[heat.column]].name });
}

function heatKey(event) {
  const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  if (event.key === "Enter" && cellText()) openCell();
  if (!moves[event.key]) return;
  event.preventDefault();
  const [down, right] = moves[event.key], bound = (value, most) => Math.max(0, Math.min(most - 1, value));
  heat.column = bound(heat.column + right, heat.methods.length);
  let row = heat.row;
  do row += down; while (heat.rows[row] && !known(heat.rows[row].at));
  if (heat.rows[row]) heat.row = row;
  paintHeat(true);
  byId("heat-said").textContent = cellText();
}
