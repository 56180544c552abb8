// The board: sorted by any column, filtered, with links to where a method loses.

function startBoard() {
  const table = byId("ranking");
  if (!table) return;
  const heads = [...table.tHead.rows[0].cells];
  const rows = [...table.tBodies[0].rows];
  for (const row of rows) {
    const name = row.querySelector(".name");
    name.replaceChildren(make("a", { href: linkTo({ method: row.dataset.method }) }, row.dataset.method));
  }
  heads.forEach((head, column) => {
    if (head.dataset.column === "interval") return;
    const button = make("button", { type: "button", class: "sort", click: () => sortBoard(rows, heads, column) }, head.textContent);
    head.replaceChildren(button);
  });
  const update = () => filterBoard(rows, heads.findIndex((head) => head.dataset.column === "mean rank"));
  watchers.push(update);
  update();
}

/** Sorts by a column, and the other way round if it is sorted by it already; what is unknown comes last. */
function sortBoard(rows, heads, column) {
  const down = heads[column].getAttribute("aria-sort") === "ascending";
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

/** Hides methods that are filtered out, and takes mean ranks over the cases that are shown. */
function filterBoard(rows, column) {
  const methods = new Set(shownMethods()), cases = shownCases();
  for (const row of rows) {
    const at = methodAt(row.dataset.method);
    row.hidden = !methods.has(at);
    const ranks = cases.map((index) => report.cases[index].rank[at]).filter(known);
    row.cells[column].textContent = ranks.length ? mean(ranks).toFixed(1) : "–";
    row.cells[column].dataset.by = ranks.length ? mean(ranks) : "";
  }
  byId("shown").textContent = `${methods.size} of ${report.methods.length} methods, mean ranks of ${cases.length} of ${report.cases.length} cases.`;
}
