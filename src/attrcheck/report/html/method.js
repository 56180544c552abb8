// One method, opened: where it loses, where it wins, and which checks it failed.

const MOST_LISTED = 8;

function openMethod(at) {
  const method = report.methods[at];
  const share = (entry) => (entry.rank[at] - 1) / Math.max(1, ranked(entry) - 1);
  const entries = report.cases.filter((entry) => known(entry.rank[at])).sort((a, b) => share(b) - share(a));
  const facts = {
    family: method.family, "passes per image": method.passes.length ? `${method.passes[0]} forward, ${method.passes[1]} backward` : "–",
    "seconds per image": known(method.seconds) ? String(method.seconds) : "–", reference: method.reference || "–",
    board: method.board ? `${method.board[0]}, Meta-Rank ${signed(method.board[1], 2)} [${signed(method.board[2], 2)}, ${signed(method.board[3], 2)}]` : "not ranked",
    checks: method.checks ? `${method.checks.passed} of ${method.checks.of} passed` : "none",
  };
  const failures = method.checks ? [...method.checks.failures, ...method.checks.known.map(([check, on, why]) => [check, on, `known: ${why}`])] : [];
  show(method.name, [compareButton(at)],
    make("dl", { class: "facts" }, Object.entries(facts).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)))),
    make("div", { class: "columns" },
      make("div", {}, make("h3", {}, "Where it loses"), caseList(entries.slice(0, MOST_LISTED), at)),
      make("div", {}, make("h3", {}, "Where it does best"), caseList(entries.slice(-MOST_LISTED).reverse(), at))),
    failures.length > 0 && [make("h3", {}, "Checks that it failed"), make("ul", {}, failures.map(([check, on, why]) => make("li", {}, make("b", {}, check), on && ` on ${on}`, `: ${why}`)))]);
}

function caseList(entries, at) {
  const row = (entry) => make("tr", {},
    make("th", { scope: "row" }, make("a", { href: linkTo({ case: entry.id, method: report.methods[at].name }) }, entry.id)),
    make("td", {}, `${entry.rank[at]} of ${ranked(entry)}`), make("td", {}, number(entry.score[at])),
    make("td", {}, number(entry.score[winner(entry)])), make("td", { class: "text" }, report.methods[winner(entry)].name));
  const heads = ["case", "rank", "score", "best", "of"];
  return make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, heads.map((head) => make("th", { scope: "col" }, head)))), make("tbody", {}, entries.map(row))));
}

/** Leads to the comparison with the best method, or with the second if this is the best. */
function compareButton(at) {
  const rival = at === 0 ? 1 : 0;
  return make("button", { type: "button", disabled: !report.methods[rival], click: () => { location.hash = linkTo({ a: report.methods[at].name, b: report.methods[rival].name }); } }, "compare with another method");
}
