/** One session as the page uses it: what it asks for, and what it says. */

import { Connection } from "./connection.js";
import { INPUT_RATE_HZ } from "./microphone.js";
import { toBase64 } from "./pcm.js";
import { OUTPUT_RATE_HZ } from "./playback.js";

const TURN_DETECTION = {
  server_vad: { type: "server_vad", silence_duration_ms: 500 },
  semantic_vad: { type: "semantic_vad" },
};

/**
 * @typedef {object} Settings
 * @property {string} instructions empty for the server's own
 * @property {keyof typeof TURN_DETECTION} turnDetection
 * @property {string} overlapPolicy empty for the server's own
 * @property {string} apiKey empty for none
 */

/** Commands of the page; in this session history is what was heard. */
export class Session {
  #connection;

  /**
   * @param {Settings} settings
   * @param {import("./connection.js").ConnectionListener} listener
   */
  constructor(settings, listener) {
    this.#connection = new Connection(settings.apiKey, config(settings), listener);
  }

  /** @param {ArrayBuffer} pcm */
  append(pcm) {
    this.#connection.send("input_audio_buffer.append", {
      audio: toBase64(pcm),
      format: "pcm16",
      sample_rate_hz: INPUT_RATE_HZ,
    });
  }

  /**
   * Add a message to the conversation and ask for an answer.
   *
   * @param {string} text
   */
  say(text) {
    const content = [{ type: "input_text", text }];
    const item = { type: "message", role: "user", content };
    this.#connection.send("conversation.item.create", { item });
    this.#connection.send("response.create");
  }

  /**
   * End an answer, be it still written or only still played.
   *
   * @param {string} responseId
   */
  interrupt(responseId) {
    this.#connection.send("output_audio_buffer.clear", { response_id: responseId });
  }

  /** @param {import("./playback.js").Heard} heard */
  acknowledge({ responseId, itemId, heardMs, truncate }) {
    this.#connection.send("playback.ack", {
      response_id: responseId,
      item_id: itemId,
      played_ms: heardMs,
      committed_ms: heardMs,
      ...(truncate && { truncate }),
    });
  }

  async close() {
    await this.#connection.close();
  }

  /** End the session now, for a page that will not be there any more. */
  leave() {
    this.#connection.leave();
  }
}

/** @param {Settings} settings */
function config({ instructions, turnDetection, overlapPolicy }) {
  // The policy and the turn detection have to say the same of interruptions.
  const silent = overlapPolicy === "listen_only" && { interrupt_response: false };
  return {
    ...(instructions && { instructions }),
    audio: {
      input: { format: { type: "audio/pcm", rate: INPUT_RATE_HZ } },
      output: { format: { type: "audio/pcm", rate: OUTPUT_RATE_HZ } },
    },
    turn_detection: { ...TURN_DETECTION[turnDetection], ...silent },
    ...(overlapPolicy && { overlap_policy: overlapPolicy }),
    playback_commit_policy: "ack_only",
  };
}
