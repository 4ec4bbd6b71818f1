// Colours of λ: viridis. The largest λ has the colour with the most contrast to the page.

const STOPS = [
  [68, 1, 84], [70, 50, 126], [54, 92, 141], [39, 127, 142], [31, 161, 135], [74, 193, 109], [160, 218, 57], [253, 231, 37],
];
const dark = matchMedia("(prefers-color-scheme: dark)");

export const onTheme = (changed) => dark.addEventListener("change", changed);

export const background = () => (dark.matches ? [22, 25, 29] : [255, 255, 255]);

export const ink = () => (dark.matches ? "#e8eaed" : "#1d2125");

/** The position of a λ between 0 and the largest λ, from 0 to 1, on a logarithmic scale: most edges have a small λ. */
export const position = (lambda, most) => Math.log1p(lambda) / Math.log1p(Math.max(most, 1));

function viridis(at) {
  const x = Math.min(Math.max(at, 0), 1) * (STOPS.length - 1);
  const low = Math.min(Math.floor(x), STOPS.length - 2);
  return STOPS[low].map((from, channel) => from + (STOPS[low + 1][channel] - from) * (x - low));
}

/** The colour of a λ: red, green and blue. */
export function colour(lambda, most) {
  const at = position(lambda, most);
  return viridis(dark.matches ? 0.2 + 0.8 * at : 0.86 * (1 - at));
}

/** A colour mixed with the background, as CSS; `share` 1 is the colour alone. */
export function css(rgb, share = 1) {
  const mixed = background().map((ground, channel) => Math.round(ground + (rgb[channel] - ground) * share));
  return `#${mixed.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

/** Black or white, whichever is more readable on a colour. */
export function inkOn(rgb) {
  const [red, green, blue] = rgb.map((value) => (value / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 ? "#000" : "#fff";
}

/** Fill the legend: a scale of colours with ticks at some values of λ. */
export function legend(figure, most) {
  const steps = [...Array(21).keys()].map((step) => Math.expm1((step / 20) * Math.log1p(Math.max(most, 1))));
  const [scale, ticks] = [figure.querySelector(".scale"), figure.querySelector(".ticks")];
  scale.style.background = `linear-gradient(to right, ${steps.map((lambda) => css(colour(lambda, most))).join()})`;
  const values = [0];
  for (let value = 1; value < most; value = String(value).startsWith("1") ? value * 3 : (value / 3) * 10) {
    if (position(value, most) < 0.92) values.push(value);
  }
  values.push(Math.max(most, 1));
  ticks.replaceChildren(
    ...values.map((value) => {
      const tick = document.createElement("span");
      tick.textContent = value.toLocaleString("en-GB");
      tick.style.left = `${100 * position(value, most)}%`;
      return tick;
    }),
  );
}
