// Scales from values to pixels, with round ticks.

const STEPS = [1, 2, 2.5, 5, 10];

/** Round numbers from low to high, about `most` of them. */
function linearTicks(low, high, most) {
  const rough = (high - low) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * STEPS.find((each) => each * power >= rough * 0.999);
  const ticks = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1) {
    ticks.push(Number((at * step).toPrecision(12)));
  }
  return ticks;
}

/** Powers of ten, with round multiples if there is room. */
function logTicks(low, high, most) {
  const between = (multiples) => {
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high) + 1; power += 1) {
      for (const multiple of multiples) {
        const value = Number((multiple * 10 ** power).toPrecision(3));
        if (value >= low * 0.9999 && value <= high * 1.0001) ticks.push(value);
      }
    }
    return ticks;
  };
  for (const multiples of [[1, 1.5, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]]) {
    const ticks = between(multiples);
    if (ticks.length <= most && ticks.length >= 2) return ticks;
  }
  const decades = between([1]);
  if (decades.length < 2) return linearTicks(low, high, most).filter((tick) => tick > 0);
  return decades.filter((_, at) => at % Math.ceil(decades.length / most) === 0);
}

/** The ends of an axis that includes all values, with a margin. */
function extent(values, axis, kind) {
  const isLog = axis.scale === "log";
  const used = isLog ? values.filter((value) => value > 0) : values;
  if (!used.length) return null;
  let low = used.reduce((a, b) => Math.min(a, b));
  let high = used.reduce((a, b) => Math.max(a, b));
  if (isLog) {
    const air = Math.max((high / low) ** 0.04, 1.04);
    return [low / air, high * air];
  }
  if (axis.zero) low = Math.min(0, low);
  if (low === high) [low, high] = axis.zero ? [low, low + 1] : [low - 0.5, low + 0.5];
  const air = (high - low) * 0.04;
  const top = kind === "percent" && high <= 1 && high > 0.85 ? 1 : high;
  return [axis.zero && low === 0 ? 0 : low - air, top + air];
}

/** The values themselves as ticks, if they are a few whole numbers. */
function wholesOf(values, axis) {
  const distinct = [...new Set(values)].sort((a, b) => a - b);
  const isFew = axis.scale === "linear" && !axis.zero && distinct.length <= 8;
  return isFew && distinct.every(Number.isInteger) ? distinct : null;
}

/** A scale over pixels from `start` to `end`. */
function numeric([low, high, wholes], axis, start, end, most) {
  const isLog = axis.scale === "log";
  const bend = isLog ? Math.log : (value) => value;
  const span = bend(high) - bend(low) || 1;
  const place = (value) => {
    if (value === null || (isLog && value <= 0)) return null;
    return start + ((bend(value) - bend(low)) / span) * (end - start);
  };
  const ticks = wholes ?? (isLog ? logTicks : linearTicks)(low, high, most);
  return { place, ticks, start, end, low, high, names: null };
}

/** A place for each name, from top to bottom. */
function named(names, start, end) {
  const size = (end - start) / Math.max(1, names.length);
  const place = (name) => {
    const at = names.indexOf(name);
    return at < 0 ? null : start + size * (at + 0.5);
  };
  return { place, ticks: names, start, end, size, names };
}
