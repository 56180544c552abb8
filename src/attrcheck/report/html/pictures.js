// Images and maps: bytes of an exhibit become small canvases.

const inflated = new Map();
const scaleOf = { maps: "own" };

const exhibitOf = (pair) => report.exhibits.findIndex((exhibit) => exhibit.pair === pair);

/** The exhibit with its pixels, which are inflated when they are first asked for. */
async function opened(at) {
  if (!inflated.has(at)) inflated.set(at, await inflate(`pixels-${at}`));
  const bytes = inflated.get(at), exhibit = report.exhibits[at];
  const [count, height, width, channels] = exhibit.shape;
  const split = count * height * width * channels;
  return {
    ...exhibit, count, height, width, channels,
    images: bytes.subarray(0, split),
    maps: new Int8Array(bytes.buffer, bytes.byteOffset + split, bytes.length - split),
  };
}

/** A canvas with `colour(pixel)` -> [r, g, b] at every pixel, shown `side` pixels high. */
function picture(exhibit, label, side, colour) {
  const { width, height } = exhibit;
  const canvas = make("canvas", { class: "picture", width, height, role: "img", "aria-label": label });
  const context = canvas.getContext("2d"), pixels = context.createImageData(width, height);
  for (let at = 0; at < width * height; at += 1) {
    pixels.data.set(colour(at), 4 * at);
    pixels.data[4 * at + 3] = 255;
  }
  context.putImageData(pixels, 0, 0);
  canvas.style.height = `${side}px`;
  canvas.style.width = `${(side * width) / height}px`;
  return canvas;
}

function imagePicture(exhibit, index, side = 64) {
  const { width, height, channels, images } = exhibit;
  const start = index * width * height * channels;
  const label = `image ${exhibit.ids[index]}, class ${exhibit.labels[index]}`;
  return picture(exhibit, label, side, (at) => {
    const first = start + at * channels;
    return channels === 3 ? images.subarray(first, first + 3) : [images[first], images[first], images[first]];
  });
}

/** Whether a method has negative values in any of its maps. */
function isSigned(exhibit, place) {
  const size = exhibit.count * exhibit.width * exhibit.height;
  return exhibit.maps.subarray(place * size, (place + 1) * size).some((value) => value < -1);
}

/** The map of a method; null where the method has none. */
function mapPicture(exhibit, method, index, side = 64) {
  const place = exhibit.methods.indexOf(method);
  if (place < 0) return null;
  const size = exhibit.width * exhibit.height, start = (place * exhibit.count + index) * size;
  const scales = exhibit.scales[place] || [];
  const most = Math.max(...scales) || 1;
  const factor = scaleOf.maps === "shared" ? scales[index] / most : 1;
  const diverging = isSigned(exhibit, place), colours = RAMPS[diverging ? "diverging" : "sequential"];
  const label = `map of ${report.methods[method].name} for image ${exhibit.ids[index]}`;
  return picture(exhibit, label, side, (at) => {
    const share = (exhibit.maps[start + at] / 127) * factor;
    return colours[Math.round(255 * Math.max(0, diverging ? 0.5 + share / 2 : share))];
  });
}

/** The score of a method for an image of an exhibit in a case; null where it has none. */
function imageScore(entry, method, exhibit, index) {
  const scores = entry && entry.perImage[method];
  const score = scores ? scores[exhibit.positions[index]] : null;
  return known(score) ? score : null;
}

/** Indices of the best and worst image of a method, as a case scores them; null where none stands out. */
function extremes(entry, method, exhibit) {
  const scored = range(exhibit.count).filter((at) => imageScore(entry, method, exhibit, at) !== null);
  if (!scored.length) return null;
  const goodness = (at) => (entry.higher ? 1 : -1) * imageScore(entry, method, exhibit, at);
  scored.sort((a, b) => goodness(b) - goodness(a));
  if (goodness(scored[0]) === goodness(scored[scored.length - 1])) return null;
  return { best: scored[0], worst: scored[scored.length - 1] };
}

/** An image or a map with words below it. */
function framed(canvas, ...words) {
  return make("figure", {}, canvas || make("span", { class: "note" }, "no map"), make("figcaption", {}, ...words));
}

/** The image itself, with its class and what the model says. */
function framedImage(exhibit, index, side) {
  const right = exhibit.labels[index] === exhibit.predictions[index];
  const words = [make("b", {}, right ? "✓ " : "✗ "), exhibit.labels[index]];
  if (!right) words.push(`, taken for ${exhibit.predictions[index]}`);
  words.push(make("br"), `p ${number(exhibit.probabilities[index], 2)}`);
  const figure = framed(imagePicture(exhibit, index, side), ...words);
  figure.className = right ? "right" : "wrong";
  figure.title = exhibit.ids[index];
  return figure;
}

/** The switch between one colour scale per map and one per method. */
function scaleSwitch(change) {
  const option = (value, text) => make("label", {}, make("input", {
    type: "radio", name: "scale", value, checked: scaleOf.maps === value,
    change: () => { scaleOf.maps = value; change(); },
  }), text);
  return make("fieldset", {}, make("legend", { hidden: true }, "colour scale"), "colour scale:", option("own", "each map its own"), option("shared", "shared by all maps of a method"));
}
