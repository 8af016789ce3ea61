/** Where the conversation stands, told from the events of the session and of the loudspeaker. */

/** How long an interruption shows before the page is plainly listening again. */
const INTERRUPTED_MS = 1_500;

/**
 * @typedef {"off" | "connecting" | "reconnecting" | "listening" | "thinking" | "speaking"
 *   | "interrupted"} State
 *
 * @typedef {object} Latency from the end of the question to the first sample of the answer
 * @property {number} ms
 * @property {string} origin the moment it is measured from
 */

/** Facts in, one state out; `onChange` runs after every fact. */
export class Conversation {
  #onChange;
  #connection = "off";
  #awaiting = false;
  #playing = false;
  #interrupted = null;
  /** @type {{name: string, at: number} | null} */
  #question = null;

  userSpeaking = false;
  /** @type {string | null} */
  activeResponse = null;
  /** @type {Latency | null} */
  latency = null;

  /** @param {() => void} onChange */
  constructor(onChange) {
    this.#onChange = onChange;
  }

  /** @returns {State} */
  get state() {
    if (this.#connection !== "open") return this.#connection;
    if (this.#playing) return "speaking";
    if (this.#interrupted !== null) return "interrupted";
    return this.activeResponse || this.#awaiting ? "thinking" : "listening";
  }

  connecting() {
    this.#update(() => (this.#connection = "connecting"));
  }

  opened() {
    this.#update(() => (this.#connection = "open"));
  }

  /** The connection broke; the session waits for the next one. */
  cut() {
    this.#update(() => (this.#connection = "reconnecting"));
  }

  /** The session is over; the last latency stays to be read. */
  closed() {
    this.#update(() => {
      this.#connection = "off";
      this.#awaiting = this.#playing = this.userSpeaking = false;
      this.#question = this.activeResponse = null;
      this.#settle();
    });
  }

  speechStarted() {
    this.#update(() => {
      this.userSpeaking = true;
      this.#awaiting = false;
    });
  }

  speechStopped() {
    this.userSpeaking = false;
    this.#ask("end of turn");
  }

  messageSent() {
    this.#ask("message");
  }

  /** What the user said will not be answered. */
  unanswered() {
    this.#update(() => (this.#awaiting = false));
  }

  responseCreated(id) {
    this.#update(() => {
      this.activeResponse = id;
      this.#awaiting = false;
      this.#settle();
    });
  }

  responseDone(id) {
    this.#update(() => {
      if (this.activeResponse === id) this.activeResponse = null;
    });
  }

  audioStarted() {
    this.#update(() => {
      this.#playing = true;
      if (this.#question) {
        const ms = Math.round(performance.now() - this.#question.at);
        this.latency = { ms, origin: this.#question.name };
      }
      this.#question = null;
    });
  }

  audioEnded() {
    this.#update(() => (this.#playing = false));
  }

  interrupted() {
    this.#update(() => {
      this.#settle();
      this.#playing = false;
      this.#interrupted = setTimeout(() => this.#update(() => this.#settle()), INTERRUPTED_MS);
    });
  }

  #ask(name) {
    this.#update(() => {
      this.#question = { name, at: performance.now() };
      this.#awaiting = true;
      this.#settle();
    });
  }

  #settle() {
    clearTimeout(this.#interrupted);
    this.#interrupted = null;
  }

  #update(change) {
    change();
    this.#onChange();
  }
}
