// The board: sorted by any column, filtered, fused anew for some cases, with links to where a method loses.

const board = { heads: [], rows: [], whole: new Map(), column: 0, down: false };

function startBoard() {
  const table = byId("ranking");
  if (!table) return;
  board.heads = [...table.tHead.rows[0].cells];
  board.rows = [...table.tBodies[0].rows];
  for (const row of board.rows) {
    row.querySelector(".name").replaceChildren(make("a", { href: linkTo({ method: row.dataset.method }) }, row.dataset.method));
    board.whole.set(row, [...row.cells].map((cell) => [[...cell.childNodes], cell.dataset.by]));
  }
  board.heads.forEach((head, column) => {
    if (head.dataset.column === "interval") return;
    const sort = () => { board.down = board.column === column && !board.down; board.column = column; sortBoard(); };
    head.replaceChildren(make("button", { type: "button", class: "sort", click: sort }, head.textContent));
  });
  watchers.push(filterBoard);
  filterBoard();
}

/** Sorts by the chosen column; what is unknown comes last. */
function sortBoard() {
  const { heads, rows, column, down } = board;
  heads.forEach((head) => head.removeAttribute("aria-sort"));
  heads[column].setAttribute("aria-sort", down ? "descending" : "ascending");
  const value = (row) => {
    const by = row.cells[column].dataset.by;
    if (by === undefined) return row.cells[column].textContent;
    return by === "" ? null : Number(by);
  };
  const compare = (a, b) => {
    const [one, other] = [value(a), value(b)];
    if (one === null || other === null) return (one === null) - (other === null);
    return (down ? -1 : 1) * (typeof one === "string" ? one.localeCompare(other) : one - other);
  };
  rows[0].parentNode.append(...[...rows].sort(compare));
}

/** Hides methods that are filtered out, and shows figures of the cases that are left. */
function filterBoard() {
  const methods = new Set(shownMethods()), cases = shownCases().map((at) => report.cases[at]);
  const whole = cases.length === report.cases.length;
  const figures = whole ? null : figuresOf(cases);
  for (const row of board.rows) {
    const at = methodAt(row.dataset.method);
    row.hidden = !methods.has(at);
    board.whole.get(row).forEach(([nodes, by], column) => setCell(row.cells[column], nodes, by));
    if (figures) showFigures(row, figures, at);
  }
  sortBoard();
  byId("shown").textContent = `${methods.size} of ${report.methods.length} methods. ${whole
    ? `All ${cases.length} cases.`
    : `Fused anew from ${cases.length} of ${report.cases.length} cases, without intervals.`}`;
}

function setCell(cell, nodes, by) {
  cell.replaceChildren(...nodes);
  if (by === undefined) delete cell.dataset.by;
  else cell.dataset.by = by;
}

/** What the board says of methods when only these cases count. */
function figuresOf(cases) {
  const count = report.methods.length, tallied = tally(cases, count), kappa = fuse(tallied);
  const scale = kappa.filter(known), sum = (values) => values.reduce((total, value) => total + value, 0);
  return {
    kappa, scale,
    place: kappa.map((value) => (known(value) ? 1 + scale.filter((other) => other > value + 1e-9).length : null)),
    wins: range(count).map((at) => (sum(tallied.met[at]) ? sum(tallied.won[at]) / sum(tallied.met[at]) : null)),
    ranks: range(count).map((at) => cases.map((entry) => entry.rank[at]).filter(known)),
    beats: range(count).map((at) => cases.map((entry) => entry.beats[at]).filter(known)),
  };
}

function showFigures(row, figures, at) {
  const { kappa, scale, place, wins, ranks, beats } = figures, won = beats[at].filter(Boolean).length;
  const show = (name, text, by) => setCell(row.cells[board.heads.findIndex((head) => head.dataset.column === name)], [text], known(by) ? String(by) : "");
  const dot = known(kappa[at]) ? intervalChart(kappa[at], null, null, Math.min(0, ...scale), Math.max(0, ...scale), "Meta-Rank") : "–";
  show("rank", known(place[at]) ? String(place[at]) : "–", place[at]);
  show("interval", dot, kappa[at]);
  show("Meta-Rank", known(kappa[at]) ? signed(kappa[at], 2) : "–", kappa[at]);
  show("95% interval", "–", null);
  show("group", "–", null);
  show("mean rank", ranks[at].length ? mean(ranks[at]).toFixed(1) : "–", ranks[at].length ? mean(ranks[at]) : null);
  show("wins", known(wins[at]) ? `${Math.round(100 * wins[at])}%` : "–", wins[at]);
  show("> random", beats[at].length ? `${won}/${beats[at].length}` : "–", beats[at].length ? won / beats[at].length : null);
}
