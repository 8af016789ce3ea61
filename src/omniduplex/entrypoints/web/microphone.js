/** The microphone: PCM chunks of one append each, with their level. */

/** Rate of the session's input. */
export const INPUT_RATE_HZ = 16000;
/** Audio of one append: short enough to react, long enough not to chatter. */
export const CHUNK_MS = 80;

const REASONS = {
  NotAllowedError: ["microphone_denied", "The browser was told not to share the microphone."],
  NotFoundError: ["microphone_missing", "This device has no microphone."],
  NotReadableError: ["microphone_busy", "Another program holds the microphone."],
};

/** Why there is no microphone; `code` is short and stable. */
export class MicrophoneError extends Error {
  /**
   * @param {string} code
   * @param {string} message
   */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** An open microphone. */
export class Microphone {
  #context;
  #stream;

  /**
   * @param {(chunk: {pcm: ArrayBuffer, level: number}) => void} onChunk
   * @returns {Promise<Microphone>}
   * @throws {MicrophoneError}
   */
  static async open(onChunk) {
    const stream = await requestStream();
    const context = new AudioContext({ latencyHint: "interactive" });
    await context.audioWorklet.addModule(new URL("capture-worklet.js", import.meta.url));
    const node = new AudioWorkletNode(context, "capture", {
      processorOptions: { rateHz: INPUT_RATE_HZ, chunkMs: CHUNK_MS },
    });
    node.port.onmessage = ({ data }) => onChunk(data);
    // The node plays silence: browsers run only nodes that lead to the destination.
    context.createMediaStreamSource(stream).connect(node).connect(context.destination);
    await context.resume();
    return new Microphone(context, stream);
  }

  constructor(context, stream) {
    this.#context = context;
    this.#stream = stream;
  }

  /** Send silence instead of sound: the session's clock is its audio, so it has to run on. */
  set muted(muted) {
    for (const track of this.#stream.getAudioTracks()) track.enabled = !muted;
  }

  async close() {
    for (const track of this.#stream.getTracks()) track.stop();
    await this.#context.close();
  }
}

/** Whether this page may ask for a microphone at all. */
export function microphoneAllowed() {
  return Boolean(navigator.mediaDevices?.getUserMedia);
}

async function requestStream() {
  if (!microphoneAllowed()) {
    throw new MicrophoneError(
      "microphone_insecure",
      "Browsers share the microphone only with https pages and with localhost.",
    );
  }
  try {
    return await navigator.mediaDevices.getUserMedia({
      audio: { channelCount: 1, echoCancellation: true, noiseSuppression: true },
    });
  } catch (error) {
    throw new MicrophoneError(...(REASONS[error.name] ?? ["microphone_failed", error.message]));
  }
}
