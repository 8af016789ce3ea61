/** Audio thread of the microphone: mono, resampled, in chunks of one append each. */

import { rms, toInt16 } from "./pcm.js";
import { Resampler } from "./resample.js";

class CaptureProcessor extends AudioWorkletProcessor {
  #resampler;
  #chunk;
  #filled = 0;

  constructor({ processorOptions: { rateHz, chunkMs } }) {
    super();
    this.#resampler = new Resampler(sampleRate, rateHz);
    this.#chunk = new Float32Array((rateHz * chunkMs) / 1000);
  }

  process([channels]) {
    if (channels.length > 0) this.#take(this.#resampler.process(mixDown(channels)));
    return true;
  }

  #take(samples) {
    for (const sample of samples) {
      this.#chunk[this.#filled++] = sample;
      if (this.#filled === this.#chunk.length) this.#send();
    }
  }

  #send() {
    const pcm = new DataView(new ArrayBuffer(2 * this.#filled));
    this.#chunk.forEach((sample, i) => pcm.setInt16(2 * i, toInt16(sample), true));
    this.port.postMessage({ pcm: pcm.buffer, level: rms(this.#chunk) }, [pcm.buffer]);
    this.#filled = 0;
  }
}

/**
 * @param {Float32Array[]} channels
 * @returns {Float32Array}
 */
function mixDown(channels) {
  if (channels.length === 1) return channels[0];
  return channels[0].map((_, i) => channels.reduce((sum, c) => sum + c[i], 0) / channels.length);
}

registerProcessor("capture", CaptureProcessor);
