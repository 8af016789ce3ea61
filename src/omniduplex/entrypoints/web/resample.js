/** Streaming sample rate conversion by a polyphase windowed-sinc filter; state spans blocks. */

/** Zero crossings of the sinc on each side: with the cutoff below, images are down by 80 dB. */
const ZERO_CROSSINGS = 24;
/** Middle of the transition band, relative to the lower of the two Nyquist frequencies. */
const CUTOFF = 0.9;
/** Shape of the Kaiser window that goes with 80 dB (Kaiser's own formula: 0.1102 * (80 - 8.7)). */
const KAISER_BETA = 7.86;

/** Converts one mono stream. */
export class Resampler {
  #up;
  #down;
  #filters;
  #history;
  #phase = 0;

  /**
   * @param {number} fromHz
   * @param {number} toHz
   */
  constructor(fromHz, toHz) {
    const divisor = greatestCommonDivisor(fromHz, toHz);
    this.#up = toHz / divisor;
    this.#down = fromHz / divisor;
    this.#filters = designFilters(this.#up, this.#down);
    // Silence before the first sample puts output 0 at the time of input 0.
    this.#history = new Float32Array(this.#filters[0].length / 2 - 1);
  }

  /**
   * @param {Float32Array} block any length
   * @returns {Float32Array} what can be told so far, in the new rate
   */
  process(block) {
    if (this.#up === this.#down) return block;
    const input = new Float32Array(this.#history.length + block.length);
    input.set(this.#history);
    input.set(block, this.#history.length);
    const taps = this.#filters[0].length;
    const output = new Float32Array(Math.ceil((input.length * this.#up) / this.#down) + 1);
    let position = 0;
    let count = 0;
    while (position + taps <= input.length) {
      output[count++] = dot(this.#filters[this.#phase], input, position);
      this.#phase += this.#down;
      position += Math.floor(this.#phase / this.#up);
      this.#phase %= this.#up;
    }
    this.#history = input.slice(position);
    return output.subarray(0, count);
  }
}

/** @returns {number} */
function dot(filter, input, position) {
  let sum = 0;
  for (let tap = 0; tap < filter.length; tap++) sum += filter[tap] * input[position + tap];
  return sum;
}

/**
 * One filter for each place between two input samples where an output sample can fall.
 *
 * @param {number} up
 * @param {number} down
 * @returns {Float32Array[]}
 */
function designFilters(up, down) {
  const lower = Math.min(1, up / down);
  const half = Math.ceil(ZERO_CROSSINGS / lower);
  const cutoff = lower * CUTOFF;
  return Array.from({ length: up }, (_, phase) => {
    const filter = Float32Array.from({ length: 2 * half }, (_, tap) => {
      const distance = tap - half + 1 - phase / up;
      return sinc(cutoff * distance) * kaiser(distance / half);
    });
    const sum = filter.reduce((total, weight) => total + weight, 0);
    return filter.map((weight) => weight / sum);
  });
}

function sinc(x) {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

/** Up to a factor, which the filters' sums take out. */
function kaiser(x) {
  return Math.abs(x) > 1 ? 0 : besselI0(KAISER_BETA * Math.sqrt(1 - x * x));
}

/** Modified Bessel function of the first kind, by its power series. */
function besselI0(x) {
  let sum = 1;
  let term = 1;
  for (let k = 1; term > sum * 1e-9; k++) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

function greatestCommonDivisor(a, b) {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
