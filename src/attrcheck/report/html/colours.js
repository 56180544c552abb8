// Colours that people with any kind of colour vision can tell apart.

/** Okabe and Ito's palette, for lines; dashes tell them apart once more. */
const LINES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#999999"];
const DASHES = ["", "7 3", "2 3", "10 3 2 3", "5 2 2 2 2 2", "12 4", "3 2", "1 2"];

/** Cividis, from low to high; and blue over white to red. */
const CIVIDIS = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"];
const DIVERGING = ["#053061", "#2166ac", "#4393c3", "#92c5de", "#f7f7f7", "#f4a582", "#d6604d", "#b2182b", "#67001f"];

/** 256 colours [r, g, b] between the stops. */
function ramp(stops) {
  const colours = stops.map((stop) => [1, 3, 5].map((at) => parseInt(stop.slice(at, at + 2), 16)));
  return range(256).map((index) => {
    const place = (index / 255) * (colours.length - 1);
    const low = Math.min(Math.floor(place), colours.length - 2);
    return colours[low].map((value, k) => Math.round(value + (place - low) * (colours[low + 1][k] - value)));
  });
}

const RAMPS = { sequential: ramp(CIVIDIS), diverging: ramp(DIVERGING) };
const CSS_RAMPS = Object.fromEntries(
  Object.entries(RAMPS).map(([name, colours]) => [name, colours.map((colour) => `rgb(${colour})`)]),
);

/** The CSS colour of a share from 0 to 1. */
function colourOf(share, name = "sequential") {
  return CSS_RAMPS[name][Math.round(255 * Math.min(1, Math.max(0, share)))];
}

/** Black or white, whichever can be read on the colour of a share. */
function inkOn(share, name = "sequential") {
  const [r, g, b] = RAMPS[name][Math.round(255 * Math.min(1, Math.max(0, share)))];
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#000000" : "#ffffff";
}

/** A strip of all colours with words at both ends. */
function colourKey(low, high, name = "sequential") {
  const canvas = make("canvas", { width: 256, height: 1, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  range(256).forEach((at) => {
    context.fillStyle = CSS_RAMPS[name][at];
    context.fillRect(at, 0, 1, 1);
  });
  return make("span", { class: "legend" }, low, canvas, high);
}

/** A colour of the page's theme. */
const themed = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
