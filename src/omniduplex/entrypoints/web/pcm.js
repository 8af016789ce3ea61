/** PCM on the wire: 16 bit little-endian mono in base64. */

const FULL_SCALE = 32768;

/**
 * @param {ArrayBuffer} buffer
 * @returns {string}
 */
export function toBase64(buffer) {
  return btoa(String.fromCharCode(...new Uint8Array(buffer)));
}

/**
 * @param {string} base64
 * @returns {Float32Array} samples from -1 to 1
 */
export function floatsFromBase64(base64) {
  const text = atob(base64);
  const samples = new Float32Array(text.length >> 1);
  for (let i = 0; i < samples.length; i++) {
    const word = text.charCodeAt(2 * i) | (text.charCodeAt(2 * i + 1) << 8);
    samples[i] = ((word << 16) >> 16) / FULL_SCALE;
  }
  return samples;
}

/**
 * @param {number} sample from -1 to 1, clipped beyond
 * @returns {number}
 */
export function toInt16(sample) {
  return Math.max(-FULL_SCALE, Math.min(FULL_SCALE - 1, Math.round(sample * FULL_SCALE)));
}

/**
 * @param {Float32Array} samples
 * @returns {number} from 0 to 1
 */
export function rms(samples) {
  let power = 0;
  for (const sample of samples) power += sample * sample;
  return samples.length ? Math.sqrt(power / samples.length) : 0;
}
