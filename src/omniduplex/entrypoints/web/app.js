/** The talk page: wires microphone, loudspeaker, session and view; the only module with all. */

import { Conversation } from "./conversation.js";
import { CHUNK_MS, Microphone, MicrophoneError, microphoneAllowed } from "./microphone.js";
import { floatsFromBase64 } from "./pcm.js";
import { Playback } from "./playback.js";
import { Session } from "./session.js";
import { Timeline } from "./timeline.js";
import { Transcript } from "./transcript.js";
import { View } from "./view.js";

/** @typedef {import("./connection.js").WireEvent} WireEvent */

/** Close code of a server that stops (RFC 6455, section 7.4.1). */
const GOING_AWAY = 1001;

class App {
  #view = new View();
  #transcript = new Transcript(this.#view.transcript);
  #timeline = new Timeline(this.#view.timeline);
  #conversation = new Conversation(() => this.#show());
  /** @type {Session | null} */
  #session = null;
  /** @type {Microphone | null} */
  #microphone = null;
  /** @type {Playback | null} */
  #playback = null;
  #muted = false;
  #appendedMs = 0;
  /** Whether the server has said why it does not open the session. */
  #refused = false;
  /** What speech over an answer does in this session; null without one. */
  overlapPolicy = null;

  constructor() {
    this.#view.bind({
      toggle: () => (this.state === "off" ? this.#start() : this.#session.close()),
      mute: () => this.#mute(!this.#muted),
      interrupt: () => this.#interrupt(),
      say: (text) => this.#say(text),
    });
    // A page that is kept for the way back would hold microphone and session meanwhile.
    window.addEventListener("pagehide", () => this.#leave());
    if (!microphoneAllowed()) this.#view.warnInsecure();
    this.#show();
  }

  get state() {
    return this.#conversation.state;
  }

  get latency() {
    return this.#conversation.latency;
  }

  get playing() {
    return this.#playback?.current ?? null;
  }

  async #start() {
    this.#conversation.connecting();
    this.#transcript.clear();
    this.#appendedMs = 0;
    this.#refused = false;
    try {
      await this.#openDevices();
      this.#mute(false);
      this.#session = new Session(this.#view.settings, {
        onEvent: (event) => this.#handlers[event.type]?.(event),
        onCut: () => {
          this.#conversation.cut();
          this.#view.showMicrophone(0);
        },
        onClose: (code, reason) => this.#onClose(code, reason),
      });
      this.#timeline.start();
    } catch (error) {
      this.#view.showError("start_failed", error.message);
      await this.#end();
    }
  }

  async #openDevices() {
    this.#playback = await Playback.open({
      onStarted: () => this.#conversation.audioStarted(),
      onProgress: (id, heardMs, level) => this.#onPlaying(id, heardMs, level),
      onEnded: (id) => this.#onPlayed(id),
      onCut: (id, heardMs) => this.#onCut(id, heardMs),
      onHeard: (heard) => this.#session?.acknowledge(heard),
    });
    try {
      this.#microphone = await Microphone.open((chunk) => this.#onChunk(chunk));
    } catch (error) {
      if (!(error instanceof MicrophoneError)) throw error;
      this.#view.showError(error.code, `${error.message} You can still type.`);
    }
  }

  #onClose(code, reason) {
    const opened = this.state !== "connecting";
    if (code === GOING_AWAY) {
      this.#view.showError("stopped", "The server was stopped.");
    } else if (code !== 1000 && (opened || !this.#refused)) {
      const hint = opened ? "The connection ended" : "No connection; does the server want a key?";
      this.#view.showError("connection_closed", `${hint} (${code}${reason && `: ${reason}`}).`);
    }
    this.#end();
  }

  #leave() {
    if (!this.#session) return;
    this.#session.leave();
    this.#end();
  }

  async #end() {
    this.#session = null;
    this.#conversation.closed();
    this.overlapPolicy = null;
    this.#timeline.stop();
    this.#transcript.dropPending();
    this.#view.showModel("not connected");
    this.#view.showMicrophone(0);
    this.#view.showPulse(0);
    const devices = [this.#microphone, this.#playback];
    this.#microphone = this.#playback = null;
    await Promise.all(devices.map((device) => device?.close()));
  }

  #mute(muted) {
    this.#muted = muted;
    if (this.#microphone) this.#microphone.muted = muted;
    this.#view.showMuted(muted);
  }

  #interrupt() {
    const responseId = this.#conversation.activeResponse ?? this.playing;
    if (!responseId) return;
    this.#session.interrupt(responseId);
    this.#fallSilent();
  }

  #say(text) {
    this.#interrupt();
    this.#session.say(text);
    this.#conversation.messageSent();
  }

  #fallSilent() {
    this.#playback?.clear(this.#conversation.activeResponse);
  }

  #onChunk({ pcm, level }) {
    if (["off", "connecting", "reconnecting"].includes(this.state)) return;
    this.#session.append(pcm);
    this.#timeline.addUser(level, this.#appendedMs);
    this.#appendedMs += CHUNK_MS;
    this.#view.showMicrophone(level);
    if (this.state !== "speaking") this.#view.showPulse(level);
  }

  #onPlaying(responseId, heardMs, level) {
    this.#transcript.hear(responseId, heardMs);
    this.#timeline.addModel(level);
    this.#view.showPulse(level);
  }

  #onPlayed(responseId) {
    this.#conversation.audioEnded();
    this.#transcript.finish(responseId);
  }

  #onCut(responseId, heardMs) {
    this.#conversation.interrupted();
    this.#transcript.cut(responseId, heardMs);
    this.#timeline.cut();
  }

  /** @type {Record<string, (event: WireEvent) => void>} */
  #handlers = {
    "session.created": ({ session }) => {
      this.#view.showModel(session.model);
      this.#onSession(session);
      this.#conversation.opened();
    },
    "session.resumed": ({ session }) => {
      this.#onSession(session);
      this.#conversation.opened();
    },
    "session.updated": ({ session }) => this.#onSession(session),
    "input_audio_buffer.speech_started": ({ item_id: itemId, audio_start_ms: startMs }) => {
      if (this.#speechInterrupts) this.#fallSilent();
      this.#transcript.dropPending();
      this.#transcript.openUser(itemId);
      this.#timeline.speechStarted(startMs);
      this.#conversation.speechStarted();
    },
    "input_audio_buffer.speech_stopped": () => {
      this.#timeline.speechStopped();
      this.#conversation.speechStopped();
    },
    "input_audio_buffer.committed": ({ item_id: itemId, event }) => {
      if (!event?.empty) return;
      this.#transcript.removeUser(itemId);
      this.#conversation.unanswered();
    },
    "input_audio_buffer.cleared": () => this.#transcript.dropPending(),
    "conversation.item.added": ({ item }) => {
      if (item.role !== "user") return;
      const text = item.content?.find((part) => part.type === "input_text")?.text;
      if (text) this.#transcript.setUser(item.id, text);
      else this.#transcript.openUser(item.id);
    },
    "conversation.item.input_audio_transcription.completed": (event) =>
      this.#transcript.setUser(event.item_id, event.transcript),
    "conversation.item.deleted": ({ item_id: itemId }) => this.#transcript.removeUser(itemId),
    "response.created": ({ response }) => this.#conversation.responseCreated(response.id),
    "response.output_audio.delta": (event) => this.#onAudio(event),
    "response.output_audio_transcript.delta": (event) =>
      this.#transcript.append(event.response_id, event.delta),
    "response.output_text.delta": (event) =>
      this.#transcript.append(event.response_id, event.delta),
    "response.output_audio.done": (event) => this.#playback?.finish(event.response_id),
    "response.done": ({ response }) => this.#onResponseDone(response),
    "response.listen": () => {
      if (!this.#conversation.activeResponse) this.#conversation.unanswered();
    },
    "output_audio_buffer.cleared": () => this.#fallSilent(),
    "session.expiring": ({ reason, time_left_ms: leftMs }) => {
      const why = reason === "shutdown" ? "The server is stopping" : "The session is running out";
      this.#view.showError("session.expiring", `${why}: ${Math.round(leftMs / 1000)} s left.`);
    },
    error: ({ error, code }) => {
      this.#refused ||= this.state === "connecting";
      this.#view.showError(error.code ?? code ?? "error", error.message ?? error);
      this.#conversation.unanswered();
    },
  };

  get #speechInterrupts() {
    return this.overlapPolicy !== "listen_only";
  }

  #onSession({ overlap_policy: policy, capabilities }) {
    this.overlapPolicy = policy ?? null;
    this.#view.offer(capabilities?.supports_barge_in !== false);
    this.#show();
  }

  #onAudio({ response_id: id, item_id: itemId, delta, sample_rate_hz: rateHz, metadata }) {
    const samples = floatsFromBase64(delta);
    this.#transcript.align(id, metadata.audio_duration_ms, metadata.audio_text_marks);
    this.#playback?.push(id, itemId, samples, rateHz);
  }

  #onResponseDone({ id, status }) {
    if (status === "cancelled") this.#fallSilent();
    this.#conversation.responseDone(id);
    this.#playback?.finish(id);
    if (this.#playback?.received(id)) return;
    if (status === "cancelled") this.#transcript.cut(id, 0);
    else this.#transcript.finish(id);
  }

  #show() {
    this.#view.show({
      state: this.state,
      latency: this.latency,
      userSpeaking: this.#conversation.userSpeaking,
      speechInterrupts: this.#speechInterrupts,
      canInterrupt: Boolean(this.#conversation.activeResponse ?? this.playing),
      hasMicrophone: this.#microphone !== null,
    });
  }
}

const app = new App();

/** For tests and the curious: how the page stands, read-only. */
window.omniduplex = Object.freeze({
  get state() {
    return app.state;
  },
  get latency() {
    return app.latency;
  },
  get playing() {
    return app.playing;
  },
  get overlapPolicy() {
    return app.overlapPolicy;
  },
});
