// The gallery: images of a pair beside the maps of chosen methods.

const gallery = { exhibit: 0, protocol: "", methods: new Set() };

function startGallery() {
  const place = byId("pictures");
  if (!report.exhibits.length) {
    place.append(make("p", {}, "This report has no images: they come with a run, from report.details.json beside report.json."));
    return;
  }
  const there = [...report.exhibits[gallery.exhibit].methods].sort((a, b) => a - b);
  const top = there.filter((at) => !report.methods[at].dummy).slice(0, 3);
  const own = range(report.methods.length).filter((at) => report.methods[at].own);
  gallery.methods = new Set([...own, ...top, methodAt("random")].filter((at) => at >= 0));
  const table = make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Images and maps" });
  const tools = make("div", { class: "toolbar" });
  const update = whenSeen(table, () => showGallery(table));
  opened(gallery.exhibit); // so that they are there when the page is printed, which cannot wait
  const lay = () => tools.replaceChildren(
    chooser("dataset and model", report.exhibits.map((exhibit, at) => [at, exhibit.pair]), gallery.exhibit, (value) => { gallery.exhibit = Number(value); lay(); update(); }),
    chooser("scores of", protocolsOf(report.exhibits[gallery.exhibit].pair), gallery.protocol, (value) => { gallery.protocol = value; update(); }),
    scaleSwitch(update));
  lay();
  const tick = (at) => make("label", {}, make("input", { type: "checkbox", checked: gallery.methods.has(at), change: (event) => { gallery.methods[event.target.checked ? "add" : "delete"](at); update(); } }), ` ${report.methods[at].name}`);
  place.append(
    make("p", { class: "note" }, "The same images for every method: the first that the model gets right (✓), and some that it gets wrong (✗). Below each map is the score of that image alone; best and worst are of the images shown, and empty where all score alike. Maps with negative values are red where positive and blue where negative; others run from dark to bright."),
    tools, make("details", { class: "fold", open: innerWidth > 900 }, make("summary", {}, "Methods"), make("div", { class: "choices" }, range(report.methods.length).map(tick))),
    table);
}

/** Protocols of a pair that score single images; unless one is chosen, that which tells them apart best. */
function protocolsOf(pair) {
  const entries = report.cases.filter((entry) => pairOf(entry) === pair && entry.perImage.some(known));
  const names = entries.map((entry) => entry.protocol);
  const variety = (entry) => new Set(entry.perImage.flat()).size;
  const finest = [...entries].sort((a, b) => variety(b) - variety(a))[0];
  if (!names.includes(gallery.protocol)) gallery.protocol = finest ? finest.protocol : "";
  return names.length ? names : [["", "none"]];
}

/** A link to maps in full size, or behind those of all methods to the images, where there are such files. */
function fullSize(exhibit, at) {
  const file = exhibit.files[at];
  return file && [make("br"), make("a", { href: file, target: "_blank", rel: "noopener" }, "full size")];
}

async function showGallery(place) {
  const exhibit = await opened(gallery.exhibit);
  const entry = report.cases.find((some) => pairOf(some) === exhibit.pair && some.protocol === gallery.protocol);
  const methods = exhibit.methods.filter((at) => gallery.methods.has(at)).sort((a, b) => a - b);
  const score = (method, index) => number(imageScore(entry, method, exhibit, index));
  const extreme = (method, index) => make("td", { class: "extreme" }, known(index) && framed(
    make("div", { class: "pair" }, imagePicture(exhibit, index), mapPicture(exhibit, method, index)), score(method, index)));
  const row = (method) => {
    const ends = (entry && extremes(entry, method, exhibit)) || {};
    return make("tr", {}, make("th", { scope: "row" }, make("a", { href: linkTo({ method: report.methods[method].name }) }, report.methods[method].name), fullSize(exhibit, exhibit.methods.indexOf(method))), extreme(method, ends.best), extreme(method, ends.worst),
      range(exhibit.count).map((index) => make("td", {}, framed(mapPicture(exhibit, method, index), score(method, index)))));
  };
  const heads = make("tr", {}, make("th", { scope: "col" }, "method", fullSize(exhibit, exhibit.methods.length)), make("th", { scope: "col" }, "best"), make("th", { scope: "col" }, "worst"),
    range(exhibit.count).map((index) => make("th", { scope: "col" }, framedImage(exhibit, index, 64))));
  place.replaceChildren(make("table", { class: "gallery" }, make("thead", {}, heads), make("tbody", {}, methods.map(row))));
}
