// Charts as SVG: curves with bands, intervals on a scale, differences of images.

const WIDTH = 640, HEIGHT = 340, LEFT = 54, RIGHT = 12, TOP = 10, BOTTOM = 34;

/** About five round values from low to high. */
function ticks(low, high) {
  const rough = (high - low || 1) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const values = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step / 1e6; at += step) values.push(at);
  return values;
}

const short = (value) => String(Number(value.toPrecision(3)));

/** A chart of curves: [{name, x, y, errors, line}], bands where errors are known. */
function curveChart(curves, label) {
  const points = curves.flatMap((curve) => curve.y.flatMap((y, at) => {
    const error = 1.96 * ((curve.errors && curve.errors[at]) || 0);
    return known(y) && known(curve.x[at]) ? [[curve.x[at], y - error], [curve.x[at], y + error]] : [];
  }));
  if (!points.length) return make("p", { class: "note" }, "None of the chosen methods has a curve here.");
  const xs = points.map((point) => point[0]), ys = points.map((point) => point[1]);
  const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
  const spread = Math.max(...ys) - Math.min(...ys) || 1;
  const [y0, y1] = [Math.min(...ys) - 0.03 * spread, Math.max(...ys) + 0.03 * spread];
  const px = (x) => LEFT + ((x - x0) / (x1 - x0 || 1)) * (WIDTH - LEFT - RIGHT);
  const py = (y) => HEIGHT - BOTTOM - ((y - y0) / (y1 - y0)) * (HEIGHT - TOP - BOTTOM);
  const chart = draw("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label });
  for (const y of ticks(y0, y1))
    chart.append(
      draw("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: py(y), y2: py(y) }),
      draw("text", { x: LEFT - 6, y: py(y) + 4, "text-anchor": "end" }, short(y)),
    );
  for (const x of ticks(x0, x1))
    chart.append(draw("text", { x: px(x), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, short(x)));
  for (const curve of curves) chart.append(...curveParts(curve, px, py));
  return chart;
}

function curveParts(curve, px, py) {
  const at = range(curve.y.length).filter((k) => known(curve.y[k]) && known(curve.x[k]));
  const place = (k, y) => `${px(curve.x[k]).toFixed(1)},${py(y).toFixed(1)}`;
  const error = (k) => 1.96 * ((curve.errors && curve.errors[k]) || 0);
  const band = curve.errors && draw("polygon", {
    points: [...at.map((k) => place(k, curve.y[k] + error(k))), ...at.reverse().map((k) => place(k, curve.y[k] - error(k)))].join(" "),
    fill: LINES[curve.line], opacity: 0.16,
  });
  const line = draw("polyline", {
    points: at.map((k) => place(k, curve.y[k])).join(" "), fill: "none",
    stroke: LINES[curve.line], "stroke-width": 2.4, "stroke-dasharray": DASHES[curve.line], "stroke-linejoin": "round",
  }, draw("title", {}, curve.name));
  return band ? [band, line] : [line];
}

/** A sample of a line, for the legend. */
const lineKey = (line) => draw("svg", { class: "key", viewBox: "0 0 30 10", "aria-hidden": "true" },
  draw("line", { x1: 0, x2: 30, y1: 5, y2: 5, stroke: LINES[line], "stroke-width": 3, "stroke-dasharray": DASHES[line] }));

/** A value with its interval on a scale from `least` to `most`. */
function intervalChart(value, low, high, least, most, name = "score") {
  const place = (x) => `${(3 + (94 * (x - least)) / (most - least || 1)).toFixed(2)}%`;
  return draw("svg", { class: "interval", role: "img", "aria-label": `${name} ${number(value)}${known(low) ? `, 95% interval ${number(low)} to ${number(high)}` : ""}` },
    least < 0 && most > 0 && name !== "score" && draw("line", { class: "zero", x1: place(0), x2: place(0), y1: 0, y2: 20 }),
    known(low) && known(high) && draw("line", { class: "range", x1: place(low), x2: place(high), y1: 10, y2: 10 }),
    draw("circle", { cx: place(value), cy: 10, r: 4 }));
}

/** Differences of single images, sorted: bars upwards where the first method is better. */
function differenceChart(differences) {
  const sorted = [...differences].sort((a, b) => b - a);
  const most = Math.max(...sorted.map(Math.abs)) || 1;
  const bar = (value, at) => {
    const height = (10 * Math.abs(value)) / most;
    return `M${at} 12v${value > 0 ? -height : height}h0.9v${value > 0 ? height : -height}z`;
  };
  const path = (wanted) => sorted.map((value, at) => (wanted(value) ? bar(value, at) : "")).join("");
  return draw("svg", { class: "spark", viewBox: `0 0 ${sorted.length} 24`, preserveAspectRatio: "none", "aria-hidden": "true" },
    draw("path", { class: "up", d: path((value) => value > 0) }),
    draw("path", { class: "down", d: path((value) => value < 0) }));
}
