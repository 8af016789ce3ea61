/** Audio thread of the loudspeaker: plays responses in order and counts what was really played. */

import { rms } from "./pcm.js";

/** A cut answer fades instead of clicking. */
const FADE_MS = 15;
/** Audio to have in hand before (and again after a gap) playing: covers one late 80 ms unit. */
const LEAD_MS = 100;
const REPORT_MS = 50;

/**
 * @typedef {object} Track audio of one response, in samples
 * @property {string} id
 * @property {Float32Array[]} chunks
 * @property {number} offset into the first chunk
 * @property {number} queued
 * @property {number} played
 * @property {boolean} flowing
 * @property {boolean} finished no more audio will come
 */

class PlaybackProcessor extends AudioWorkletProcessor {
  /** @type {Map<string, Track>} */
  #tracks = new Map();
  #tail = new Float32Array(0);
  #unreported = 0;
  #loudest = 0;

  constructor() {
    super();
    this.port.onmessage = ({ data }) => this[data.order](data);
  }

  push({ id, samples }) {
    const track = this.#track(id);
    track.chunks.push(samples);
    track.queued += samples.length;
  }

  finish({ id }) {
    this.#track(id).finished = true;
  }

  clear() {
    const cut = [...this.#tracks.values()].map(({ id, played }) => ({ id, played }));
    const [current] = this.#tracks.values();
    if (current?.flowing) this.#tail = fadeOut(current);
    this.#tracks.clear();
    this.port.postMessage({ report: "cleared", cut });
  }

  process(_, [[output]]) {
    let filled = this.#playTail(output);
    for (const track of this.#tracks.values()) {
      filled = this.#play(track, output, filled);
      if (!track.finished || track.queued > 0) break;
      this.#tracks.delete(track.id);
      this.#report("ended", track);
    }
    this.#reportProgress(output);
    return true;
  }

  #track(id) {
    let track = this.#tracks.get(id);
    if (!track) {
      const empty = { chunks: [], offset: 0, queued: 0, played: 0, flowing: false };
      track = { id, ...empty, finished: false };
      this.#tracks.set(id, track);
    }
    return track;
  }

  #playTail(output) {
    const part = this.#tail.subarray(0, output.length);
    output.set(part);
    this.#tail = this.#tail.subarray(part.length);
    return part.length;
  }

  #play(track, output, filled) {
    const lead = (sampleRate * LEAD_MS) / 1000;
    track.flowing ||= track.queued > 0 && (track.finished || track.queued >= lead);
    if (!track.flowing) return filled;
    const before = track.played;
    const end = take(track, output, filled);
    if (before === 0 && track.played > 0) this.#report("started", track);
    if (track.queued === 0) track.flowing = false;
    return end;
  }

  #reportProgress(output) {
    this.#unreported += output.length;
    this.#loudest = Math.max(this.#loudest, rms(output));
    if (this.#unreported < (sampleRate * REPORT_MS) / 1000) return;
    const [current] = this.#tracks.values();
    if (current?.flowing) this.#report("progress", current, this.#loudest);
    this.#unreported = 0;
    this.#loudest = 0;
  }

  #report(report, { id, played }, level = 0) {
    this.port.postMessage({ report, id, played, level });
  }
}

/**
 * Move samples from a track to the output from `filled` on.
 *
 * @param {Track} track
 * @param {Float32Array} output
 * @param {number} filled
 * @returns {number} where the output is filled now
 */
function take(track, output, filled) {
  while (filled < output.length && track.chunks.length > 0) {
    const [chunk] = track.chunks;
    const part = chunk.subarray(track.offset, track.offset + output.length - filled);
    output.set(part, filled);
    filled += part.length;
    track.offset += part.length;
    track.queued -= part.length;
    track.played += part.length;
    if (track.offset === chunk.length) {
      track.chunks.shift();
      track.offset = 0;
    }
  }
  return filled;
}

/**
 * @param {Track} track
 * @returns {Float32Array}
 */
function fadeOut(track) {
  const tail = new Float32Array(Math.round((sampleRate * FADE_MS) / 1000));
  take(track, tail, 0);
  return tail.map((sample, i) => sample * (1 - i / tail.length));
}

registerProcessor("playback", PlaybackProcessor);
