// The filters above the board: which cases and which methods are shown.

const filters = { dataset: "", model: "", protocol: "", family: "", dummies: true, name: "" };
const watchers = [];

const shownCases = () =>
  range(report.cases.length).filter((at) =>
    ["dataset", "model", "protocol"].every((kind) => !filters[kind] || report.cases[at][kind] === filters[kind]));

const shownMethods = () =>
  range(report.methods.length).filter((at) => {
    const method = report.methods[at];
    return (!filters.family || method.family === filters.family)
      && (filters.dummies || !method.dummy)
      && method.name.toLowerCase().includes(filters.name.toLowerCase());
  });

/** What to call when a part must be drawn anew: it is, at once or as soon as it comes into sight. */
function whenSeen(element, update) {
  let seen = false, stale = true;
  new IntersectionObserver((entries) => {
    seen = entries[entries.length - 1].isIntersecting;
    if (seen && stale) update();
    if (seen) stale = false;
    if (seen) element.dataset.drawn = "yes";
  }, { rootMargin: "300px" }).observe(element);
  drawers.push(update);
  return () => {
    if (seen) update();
    else stale = true;
  };
}

/** Draws the controls; whoever watches is told of every change. */
function startFilters() {
  const change = (kind) => (value) => {
    filters[kind] = value;
    watchers.forEach((watch) => watch());
  };
  const all = (kind, values) => chooser(kind, [["", "all"], ...unique(values).sort()], "", change(kind));
  byId("filters").append(
    ...["dataset", "model", "protocol"].map((kind) => all(kind, report.cases.map((entry) => entry[kind]))),
    all("family", report.methods.map((method) => method.family)),
    make("label", {}, "method", make("input", { type: "search", size: 14, placeholder: "part of a name", input: (event) => change("name")(event.target.value) })),
    make("label", { class: "tick" }, make("input", { type: "checkbox", checked: true, change: (event) => change("dummies")(event.target.checked) }), "dummies"),
  );
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
}
