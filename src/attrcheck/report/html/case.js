// One case, opened: curves, scores with intervals, and images on which a method does well and badly.

const looking = { chosen: [] };

function openCase(at, focus) {
  const entry = report.cases[at], best = winner(entry), random = methodAt("random");
  const wanted = [focus, best, random].filter((method) => method >= 0 && known(entry.score[method]));
  looking.chosen = unique(wanted);
  const chart = make("div"), table = make("div", { class: "scroll" }), images = make("div");
  const update = () => {
    chart.replaceChildren(...caseCurves(entry));
    table.replaceChildren(scoreTable(entry, focus, update));
  };
  update();
  const subject = known(entry.score[focus]) ? focus : worstShown(entry);
  showImages(images, entry, subject, best);
  const cases = shownCases(), here = cases.indexOf(at);
  const go = (step, text) => {
    const next = report.cases[cases[here + step]];
    return make("button", { type: "button", disabled: here < 0 || !next, click: () => { location.hash = linkTo({ case: next.id, ...(focus >= 0 && { method: report.methods[focus].name }) }); } }, text);
  };
  show(entry.id, [go(-1, "← previous case"), go(1, "next case →")],
    focus >= 0 && caseSentence(entry, focus, best),
    make("div", { class: "columns uneven" },
      make("div", {}, make("h3", {}, "Curves"), chart, images),
      make("div", {}, make("h3", {}, "Scores"), table)),
    make("h3", {}, "Settings"), caseFacts(entry));
}

/** The last of the case that is not a dummy. */
function worstShown(entry) {
  const methods = range(report.methods.length).filter((at) => known(entry.rank[at]) && !report.methods[at].dummy);
  return methods.sort((a, b) => entry.rank[b] - entry.rank[a])[0] ?? -1;
}

function caseSentence(entry, focus, best) {
  const name = report.methods[focus].name, note = entry.notes[focus];
  if (note) return make("p", {}, `${name}: ${note.join(": ")}`);
  const beaten = entry.beats[focus] === true ? "It beats random." : entry.beats[focus] === false ? "It does not beat random." : "";
  return make("p", {}, `${name} is ${entry.rank[focus]} of ${ranked(entry)}: ${number(entry.score[focus])}, the best, ${report.methods[best].name}, has ${number(entry.score[best])} (${entry.higher ? "higher" : "lower"} is better). ${beaten}`);
}

function caseCurves(entry) {
  const shared = !Array.isArray(entry.x[0]) && entry.x.some((x) => typeof x === "number");
  const curves = looking.chosen.map((method, line) => ({ method, line: line % LINES.length })).filter(({ method }) => entry.y[method]).map(({ method, line }) => ({
    name: report.methods[method].name, line,
    x: shared ? entry.x : entry.x[method] || [],
    y: entry.y[method], errors: entry.errors[method],
  }));
  if (!entry.y.some(known)) return [make("p", { class: "note" }, "This protocol has no curve.")];
  const names = curves.map((curve) => curve.name).join(", ");
  const legend = curves.map((curve) => make("span", {}, lineKey(curve.line), ` ${curve.name}`));
  const bands = curves.some((curve) => curve.errors) ? "Bands: 95% of each value, over images." : "";
  return [curveChart(curves, `Curves of ${names} in ${entry.id}`), make("div", { class: "legend" }, legend), make("p", { class: "note" }, bands)];
}

function scoreTable(entry, focus, update) {
  const methods = range(report.methods.length);
  methods.sort((a, b) => (entry.rank[a] ?? Infinity) - (entry.rank[b] ?? Infinity) || a - b);
  const ends = [...entry.low, ...entry.high, ...entry.score].filter(known);
  const [least, most] = [Math.min(...ends), Math.max(...ends)];
  const tick = (method) => {
    const place = looking.chosen.indexOf(method);
    const toggle = () => { place < 0 ? looking.chosen.push(method) : looking.chosen.splice(place, 1); update(); };
    return make("label", {}, make("input", { type: "checkbox", checked: place >= 0, disabled: !entry.y[method], "aria-label": `draw ${report.methods[method].name}`, change: toggle }), place >= 0 && lineKey(place % LINES.length));
  };
  const row = (method) => make("tr", { class: method === focus ? "chosen" : null },
    make("td", {}, tick(method)), make("td", {}, known(entry.rank[method]) ? String(entry.rank[method]) : "–"),
    make("th", { scope: "row" }, make("a", { href: linkTo({ case: entry.id, method: report.methods[method].name }) }, report.methods[method].name)),
    known(entry.score[method])
      ? [make("td", { class: "wide" }, intervalChart(entry.score[method], entry.low[method], entry.high[method], least, most)),
        make("td", {}, number(entry.score[method])), make("td", {}, `${number(entry.low[method])} to ${number(entry.high[method])}`), make("td", {}, make("code", {}, entry.fingerprint[method]))]
      : make("td", { colspan: 4, class: "text" }, (entry.notes[method] || ["no score"]).join(": ")));
  const heads = ["curve", "rank", "method", entry.higher ? "score, higher is better" : "score, lower is better", "", "95% interval", "fingerprint"];
  return make("table", {}, make("thead", {}, make("tr", {}, heads.map((head) => make("th", { scope: "col" }, head)))), make("tbody", {}, methods.map(row)));
}

function caseFacts(entry) {
  const facts = { dataset: entry.dataset, model: entry.model, protocol: entry.protocol, images: entry.images, "accuracy of the model": percent(entry.accuracy), better: entry.higher ? "higher" : "lower", ...entry.settings };
  if (Object.keys(entry.tuning).length) facts["fine-tuned"] = JSON.stringify(entry.tuning);
  return make("dl", { class: "facts" }, Object.entries(facts).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, String(value ?? "–")))));
}

/** Images on which a method is at its worst and at its best, with its map and the winner's. */
async function showImages(place, entry, method, best) {
  const at = exhibitOf(pairOf(entry));
  if (at < 0 || method < 0) return;
  const exhibit = await opened(at), ends = extremes(entry, method, exhibit);
  if (!ends) return;
  const rival = best === method ? methodAt("random") : best, name = (index) => report.methods[index].name;
  const side = innerWidth < 500 ? 96 : 112;
  const map = (index, image) => framed(mapPicture(exhibit, index, image, side), make("b", {}, name(index)), make("br"), number(imageScore(entry, index, exhibit, image)));
  const strip = (title, image) => [make("h3", {}, title), make("div", { class: "strip" },
    framedImage(exhibit, image, side), map(method, image), rival >= 0 && rival !== method && map(rival, image))];
  const update = () => place.replaceChildren(
    ...strip(`${name(method)} at its worst`, ends.worst).flat(), ...strip(`${name(method)} at its best`, ends.best).flat(),
    make("p", { class: "note" }, `Of the ${exhibit.count} images of the gallery; below each map, the score of the image.${Object.keys(entry.tuning).length ? " The maps are those of the model before it was fine-tuned." : ""}`),
    make("div", { class: "toolbar" }, scaleSwitch(update)));
  update();
}
