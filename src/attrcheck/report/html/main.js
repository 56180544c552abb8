// Start: unpack the data, wake the parts, follow links.

/** Opens the dialog with a title, buttons and content. */
function show(title, buttons, ...content) {
  const dialog = byId("dialog");
  dialog.replaceChildren(
    make("div", { class: "bar" }, make("h2", { id: "dialog-title", tabindex: -1, autofocus: true }, title), buttons, make("button", { type: "button", click: () => dialog.close() }, "close")),
    ...content.flat(2).filter(Boolean));
  if (!dialog.open) dialog.showModal();
  byId("dialog-title").focus();
  dialog.scrollTop = 0;
  dialog.dataset.link = location.hash;
}

function follow() {
  const wanted = linked(), dialog = byId("dialog");
  const at = wanted.case === undefined ? -1 : caseAt(wanted.case), method = methodAt(wanted.method);
  if (at >= 0) return openCase(at, method);
  if (method >= 0) return openMethod(method);
  if (dialog.open) dialog.close();
  const [a, b] = [methodAt(wanted.a), methodAt(wanted.b)];
  if (a >= 0 && b >= 0 && a !== b) {
    chooseRivals(a, b);
    byId("rivals").scrollIntoView();
  }
}

/** Light or dark, whatever the system says. */
function startTheme() {
  const root = document.documentElement;
  byId("theme").addEventListener("click", () => {
    const dark = getComputedStyle(root).colorScheme === "dark";
    root.dataset.theme = dark ? "light" : "dark";
    watchers.forEach((watch) => watch());
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => watchers.forEach((watch) => watch()));
}

async function start() {
  report = JSON.parse(new TextDecoder().decode(await inflate("data")));
  document.querySelectorAll(".scripted").forEach((part) => { part.hidden = false; });
  startTheme();
  startPaper();
  startFilters();
  startBoard();
  if (report.cases.length) startHeatmap();
  startGallery();
  startCompare();
  const dialog = byId("dialog");
  dialog.addEventListener("close", () => { if (location.hash === dialog.dataset.link) history.replaceState(null, "", "#"); });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  addEventListener("hashchange", follow);
  follow();
  document.documentElement.dataset.ready = "yes";
}

start().catch((error) => {
  byId("problem").hidden = false;
  byId("problem").textContent = `The interactive parts of this page could not start (${error}). The tables below are complete.`;
});
