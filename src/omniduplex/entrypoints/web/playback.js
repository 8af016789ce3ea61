/** The loudspeaker: a queue of responses that knows how much of each was really heard. */

import { Resampler } from "./resample.js";

/** Rate the session asks for; the context runs at it, so that nothing is converted twice. */
export const OUTPUT_RATE_HZ = 24000;
const ACK_INTERVAL_MS = 250;

/**
 * @typedef {object} Heard how far a response was heard, in ms of its audio
 * @property {string} responseId
 * @property {string} itemId
 * @property {number} heardMs whole ms, rounded down
 * @property {boolean} truncate nothing more of it will be heard
 *
 * @typedef {object} PlaybackListener
 * @property {(responseId: string) => void} onStarted its first sample is playing
 * @property {(responseId: string, heardMs: number, level: number) => void} onProgress
 * @property {(responseId: string) => void} onEnded all of it was played
 * @property {(responseId: string, heardMs: number) => void} onCut
 * @property {(heard: Heard) => void} onHeard what the server should be told
 *
 * @typedef {object} Playing
 * @property {string} itemId
 * @property {number} receivedMs
 * @property {number} heardMs
 * @property {number} toldMs
 * @property {boolean} over played to its end, or cut
 * @property {Resampler} [resampler]
 */

/** Plays what is pushed, in order; one for a conversation. */
export class Playback {
  #context;
  #node;
  #listener;
  /** @type {Map<string, Playing>} */
  #responses = new Map();

  /**
   * @param {PlaybackListener} listener
   * @returns {Promise<Playback>}
   */
  static async open(listener) {
    const context = new AudioContext({ sampleRate: OUTPUT_RATE_HZ, latencyHint: "interactive" });
    await context.audioWorklet.addModule(new URL("playback-worklet.js", import.meta.url));
    const node = new AudioWorkletNode(context, "playback", {
      numberOfInputs: 0,
      outputChannelCount: [1],
    });
    node.connect(context.destination);
    await context.resume();
    return new Playback(context, node, listener);
  }

  constructor(context, node, listener) {
    this.#context = context;
    this.#node = node;
    this.#listener = listener;
    node.port.onmessage = ({ data }) => this.#onReport(data);
  }

  /** The response to be heard now or next. */
  get current() {
    return [...this.#responses].find(([, response]) => !response.over)?.[0] ?? null;
  }

  /**
   * Whether audio of this response came, be it played, to be played, or cut.
   *
   * @param {string} responseId
   */
  received(responseId) {
    return this.#responses.get(responseId)?.receivedMs > 0;
  }

  /**
   * Queue audio, unless its response was cut.
   *
   * @param {string} responseId
   * @param {string} itemId
   * @param {Float32Array} samples
   * @param {number} rateHz
   */
  push(responseId, itemId, samples, rateHz) {
    const response = this.#response(responseId, itemId);
    if (response.over) return;
    response.receivedMs += (samples.length * 1000) / rateHz;
    if (rateHz !== this.#context.sampleRate) {
      response.resampler ??= new Resampler(rateHz, this.#context.sampleRate);
      samples = response.resampler.process(samples).slice();
    }
    this.#node.port.postMessage({ order: "push", id: responseId, samples }, [samples.buffer]);
  }

  /** No more audio will come for this response. */
  finish(responseId) {
    if (this.#responses.get(responseId)?.over === false) {
      this.#node.port.postMessage({ order: "finish", id: responseId });
    }
  }

  /**
   * Fall silent now, and stay silent about everything known by now.
   *
   * @param {string | null} [responseId] one that may not have sent audio yet
   */
  clear(responseId) {
    if (responseId) this.#response(responseId, "");
    for (const response of this.#responses.values()) response.over = true;
    this.#node.port.postMessage({ order: "clear" });
  }

  async close() {
    await this.#context.close();
  }

  /** @returns {Playing} */
  #response(responseId, itemId) {
    let response = this.#responses.get(responseId);
    if (!response) {
      response = { itemId, receivedMs: 0, heardMs: 0, toldMs: 0, over: false };
      this.#responses.set(responseId, response);
    }
    return response;
  }

  #onReport({ report, id, played, level, cut }) {
    if (report === "cleared") {
      for (const one of cut) this.#onCut(one.id, one.played);
      return;
    }
    const response = this.#responses.get(id);
    if (response.over) return;
    if (report === "started") this.#listener.onStarted(id);
    if (report === "progress") this.#onProgress(id, response, played, level);
    if (report === "ended") this.#onEnded(id, response);
  }

  #onProgress(id, response, played, level) {
    this.#advance(response, played);
    this.#listener.onProgress(id, response.heardMs, level);
    if (response.heardMs - response.toldMs >= ACK_INTERVAL_MS) this.#tell(id, response, false);
  }

  #onEnded(id, response) {
    response.heardMs = Math.floor(response.receivedMs);
    response.over = true;
    this.#tell(id, response, false);
    this.#listener.onEnded(id);
  }

  #onCut(id, played) {
    const response = this.#responses.get(id);
    this.#advance(response, played);
    this.#tell(id, response, true);
    this.#listener.onCut(id, response.heardMs);
  }

  /** A sample that was rendered is heard once it has passed the device's own buffer. */
  #advance(response, played) {
    const latencyMs = (this.#context.outputLatency || this.#context.baseLatency || 0) * 1000;
    const heardMs = Math.floor((played * 1000) / this.#context.sampleRate - latencyMs);
    const limitMs = Math.floor(response.receivedMs);
    response.heardMs = Math.max(response.heardMs, Math.min(heardMs, limitMs));
  }

  #tell(responseId, response, truncate) {
    const { itemId, heardMs } = response;
    response.toldMs = heardMs;
    this.#listener.onHeard({ responseId, itemId, heardMs, truncate });
  }
}
