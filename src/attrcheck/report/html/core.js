// Elements, numbers, links, and the data of the page. Text only ever enters as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";
let report = { methods: [], cases: [], wins: [], exhibits: [] };

const byId = (id) => document.getElementById(id);
const make = (tag, attributes, ...children) =>
  fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

/** Sets attributes, listeners (functions) and children; what is null or false is left out. */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false)
      element.setAttribute(name, value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** The bytes of a script element that holds deflated data in base64. */
async function inflate(id) {
  const text = atob(byId(id).textContent.trim());
  const packed = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const known = (value) => value !== null && value !== undefined;
const number = (value, digits = 3) => (known(value) ? Number(value).toFixed(digits) : "–");
const signed = (value, digits = 3) => (known(value) && value >= 0 ? "+" : "") + number(value, digits);
const percent = (value) => (known(value) ? `${(100 * value).toFixed(1)}%` : "–");
const range = (count) => Array.from({ length: count }, (_, index) => index);
const unique = (values) => [...new Set(values)];
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Positive where a is better than b in a case; null where one has no score. */
function advantage(entry, a, b) {
  if (!known(a) || !known(b)) return null;
  return entry.higher ? a - b : b - a;
}

/** How many methods have a rank in a case. */
const ranked = (entry) => entry.rank.filter(known).length;

/** The index of the best method of a case, -1 if none has a score. */
function winner(entry) {
  const best = Math.min(...entry.rank.filter(known));
  return entry.rank.indexOf(best);
}

const methodAt = (name) => report.methods.findIndex((method) => method.name === name);
const caseAt = (id) => report.cases.findIndex((entry) => entry.id === id);
const pairOf = (entry) => `${entry.dataset}-${entry.model}`;

/** A link of the form #case=...&method=... */
const linkTo = (parts) => `#${new URLSearchParams(parts)}`;
const linked = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

/** A select with a label; `options` are values, or pairs of value and text. */
function chooser(label, options, value, change) {
  const choices = options.map((option) => {
    const [key, text] = Array.isArray(option) ? option : [option, option];
    return make("option", { value: key, selected: String(key) === String(value) }, text);
  });
  const select = make("select", { change: (event) => change(event.target.value) }, choices);
  return make("label", {}, label, select);
}

/** Shows a text beside the pointer, or hides it. */
function tip(text, event) {
  const box = byId("tip");
  box.hidden = !text;
  box.textContent = text;
  if (!text || !event) return;
  const left = Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8);
  const below = event.clientY + 18 + box.offsetHeight < innerHeight;
  box.style.left = `${Math.max(4, left)}px`;
  box.style.top = `${below ? event.clientY + 18 : event.clientY - box.offsetHeight - 10}px`;
}
