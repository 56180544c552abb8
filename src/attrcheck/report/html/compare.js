// Methods against each other: who beats whom how often, and two of them case by case, image by image.

const MOST_DUELS = 12;
const rivals = { a: 0, b: 1, width: 0, update: null };

function startCompare() {
  const place = byId("pairwise");
  if (report.methods.length < 2) {
    place.append(make("p", {}, "It takes two methods."));
    return;
  }
  place.append(
    make("p", { class: "note" }, "Each cell: how often the method of the row beats that of the column, over all cases; red is often, blue is seldom. Choose a cell to compare the two."),
    colourKey("never", "always", "diverging"),
    make("div", { class: "heat", id: "wins" }, make("div", { class: "corner" }), make("canvas", { class: "tops" }), make("canvas", { class: "sides" }),
      make("canvas", { class: "cells", role: "img", "aria-label": "Pairwise wins; the two selects below do the same as a click", mousemove: pointRivals, mouseleave: () => tip(""), click: clickRivals })),
    make("div", { class: "toolbar", id: "rivals" }), make("div", { id: "duel" }));
  const paint = whenSeen(byId("wins"), paintWins);
  rivals.update = whenSeen(byId("duel"), showDuel);
  watchers.push(paint, rivals.update);
  addEventListener("resize", paint);
  chooseRivals(0, range(report.methods.length).find((at) => at > 0 && known(report.wins[0][at])) || 1);
}

function paintWins() {
  const [, tops, sides, cells] = byId("wins").children, methods = shownMethods();
  const width = Math.max(13, Math.min(24, Math.floor((byId("pairwise").clientWidth - NAMES - 60) / (methods.length || 1))));
  rivals.width = width;
  paintTops(sized(tops, width * methods.length + 50, NAMES), methods, width);
  paintSides(sized(sides, NAMES + 10, ROW * methods.length), methods.map((at) => ({ name: report.methods[at].name })));
  const context = sized(cells, width * methods.length + 50, ROW * methods.length), absent = themed("--absent");
  methods.forEach((a, y) => methods.forEach((b, x) => {
    const share = report.wins[a][b];
    context.fillStyle = a === b || !known(share) ? absent : colourOf(share, "diverging");
    context.fillRect(x * width, y * ROW, width - 1, ROW - 1);
  }));
}

/** The methods of the row and column under the pointer. */
function rivalsAt(event) {
  const box = event.target.getBoundingClientRect(), methods = shownMethods();
  return [methods[Math.floor((event.clientY - box.top) / ROW)], methods[Math.floor((event.clientX - box.left) / rivals.width)]];
}

function pointRivals(event) {
  const [a, b] = rivalsAt(event);
  const there = known(a) && known(b) && a !== b;
  tip(there ? `${report.methods[a].name} beats ${report.methods[b].name}: ${percent(report.wins[a][b])}` : "", event);
}

function clickRivals(event) {
  const [a, b] = rivalsAt(event);
  if (known(a) && known(b) && a !== b) location.hash = linkTo({ a: report.methods[a].name, b: report.methods[b].name });
}

function chooseRivals(a, b) {
  Object.assign(rivals, { a, b });
  const names = report.methods.map((method, at) => [at, method.name]);
  byId("rivals").replaceChildren(
    chooser("method", names, a, (value) => chooseRivals(Number(value), rivals.b)),
    chooser("against", names, b, (value) => chooseRivals(rivals.a, Number(value))));
  rivals.update();
}

/** Differences image by image, positive where a is better; null without scores of images. */
function imageDifferences(entry, a, b) {
  const [one, other] = [entry.perImage[a], entry.perImage[b]];
  if (!one || !other) return null;
  return one.map((score, at) => advantage(entry, score, other[at])).filter(known);
}

/** Mean and 95% interval of differences, and images with which a test at 5% has a power of 80%. */
function summary(differences) {
  const middle = mean(differences), count = differences.length;
  const variance = differences.reduce((sum, value) => sum + (value - middle) ** 2, 0) / Math.max(1, count - 1);
  const needed = middle ? Math.max(2, Math.ceil(7.849 * variance / middle ** 2 + 1.921)) : null;
  return { middle, margin: 1.96 * Math.sqrt(variance / count), needed };
}

/** The difference of two Meta-Ranks on the whole board, and whether it tells the methods apart. */
function apart(a, b) {
  const [one, other] = [report.methods[a].board, report.methods[b].board];
  if (!one || !other || !report.margins.length) return "";
  const margin = report.margins[Math.max(a, b)][Math.min(a, b)], difference = one[1] - other[1];
  if (!known(margin)) return ` On the whole board they took part on too few dataset x model pairs to be told apart.`;
  const told = Math.abs(difference) > margin ? "told apart" : "not told apart";
  return ` On the whole board their Meta-Ranks differ by ${signed(difference, 2)} (${signed(difference - margin, 2)} to ${signed(difference + margin, 2)}, corrected for all pairs of methods): ${told}.`;
}

function showDuel() {
  const { a, b } = rivals, [one, other] = [report.methods[a].name, report.methods[b].name];
  const entries = shownCases().map((at) => report.cases[at]).filter((entry) => known(entry.score[a]) && known(entry.score[b]));
  const duels = entries.map((entry) => {
    const differences = imageDifferences(entry, a, b), overall = advantage(entry, entry.score[a], entry.score[b]);
    return { entry, differences, overall, ...(differences && differences.length > 1 && summary(differences)) };
  });
  const strength = (duel) => (known(duel.margin) && duel.margin > 0 ? duel.middle / duel.margin : Math.sign(duel.overall) * 1e-6);
  duels.sort((p, q) => strength(q) - strength(p));
  const count = (wanted) => duels.filter((duel) => wanted(duel.overall)).length;
  const said = `${one} has the better score in ${count((x) => x > 0)} of ${duels.length} cases shown, ${other} in ${count((x) => x < 0)}. The clearest wins of ${one} come first, those of ${other} last. Differences are positive, and images won, where ${one} is better; each bar is an image. With the images needed, a paired test at 5% would tell the two apart in four runs of five.${a === b ? "" : apart(a, b)}`;
  const heads = ["case", one, other, "difference", "95% interval", "image by image", "images won / lost", "images needed"];
  byId("duel").replaceChildren(make("p", {}, said), make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Case by case" },
    make("table", {}, make("thead", {}, make("tr", {}, heads.map((head) => make("th", { scope: "col" }, head)))), make("tbody", {}, duelRows(duels)))));
}

/** The clearest wins of both; what lies between is shown when it is asked for. */
function duelRows(duels) {
  const rows = (some) => some.map(duelRow), middle = duels.slice(MOST_DUELS, -MOST_DUELS);
  if (!middle.length) return rows(duels);
  const more = (event) => event.target.closest("tr").replaceWith(...rows(middle));
  const between = make("tr", {}, make("td", { colspan: 8 }, make("button", { type: "button", class: "link", click: more }, `show ${middle.length} cases between`)));
  return [...rows(duels.slice(0, MOST_DUELS)), between, ...rows(duels.slice(-MOST_DUELS))];
}

function duelRow({ entry, differences, overall, middle, margin, needed }) {
  const wins = differences && [differences.filter((x) => x > 0).length, differences.filter((x) => x < 0).length];
  return make("tr", {},
    make("th", { scope: "row" }, make("a", { href: linkTo({ case: entry.id, method: report.methods[rivals.a].name }) }, entry.id)),
    make("td", {}, number(entry.score[rivals.a])), make("td", {}, number(entry.score[rivals.b])), make("td", {}, signed(overall)),
    make("td", {}, known(margin) ? `${signed(middle - margin)} to ${signed(middle + margin)}` : "–"),
    make("td", {}, differences && differences.length > 1 ? differenceChart(differences) : "–"),
    make("td", {}, wins ? `${wins[0]} / ${wins[1]} of ${differences.length}` : "–"),
    make("td", {}, known(needed) ? String(needed) : "–"));
}
