// One method, opened: where it loses, where it wins, and its card.

const MOST_LISTED = 8;

function openMethod(at) {
  const method = report.methods[at];
  const share = (entry) => (entry.rank[at] - 1) / Math.max(1, ranked(entry) - 1);
  const entries = report.cases.filter((entry) => known(entry.rank[at])).sort((a, b) => share(b) - share(a));
  show(method.name, [compareButton(at)], cardParts(method.card.slice(0, 2)),
    make("div", { class: "columns" },
      make("div", {}, make("h3", {}, "Where it loses"), caseList(entries.slice(0, MOST_LISTED), at)),
      make("div", {}, make("h3", {}, "Where it does best"), caseList(entries.slice(-MOST_LISTED).reverse(), at))),
    cardParts(method.card.slice(2)));
}

/** Some sections of a card: a title, and names with texts. */
function cardParts(sections) {
  const line = ([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text));
  return make("div", { class: "columns" }, sections.map(([title, facts]) => make("div", {}, make("h3", {}, title), make("dl", { class: "card" }, facts.map(line)))));
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
