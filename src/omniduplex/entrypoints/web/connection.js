/** The WebSocket to the server this page came from: JSON events both ways, and back after a cut. */

const PATH = "/v1/realtime?duplex=1&autostart=0";
/** Keeps a session alive whose user only types; far below the server's patience of minutes. */
const HEARTBEAT_MS = 30_000;
/** How long a closing server gets for its last words. */
const CLOSE_TIMEOUT_MS = 2_000;
/** What a browser's timer can wait at most. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
/** The first try is at once; then the waits double, from the first of these up to the second. */
const BACKOFF_MS = [250, 4_000];
/** Closes after which the session waits for us, by code and reason. */
const CUTS = ["1006 ", "1011 keepalive ping timeout", "1008 runtime_resume_failed"];

/**
 * @typedef {{type: string} & Record<string, any>} WireEvent
 *
 * @typedef {object} ConnectionListener
 * @property {(event: WireEvent) => void} onEvent
 * @property {() => void} onCut the socket broke; `session.resumed` or `onClose` follows
 * @property {(code: number, reason: string) => void} onClose once, whoever closed it
 */

/** One session, on one socket after the other. */
export class Connection {
  #protocols;
  #listener;
  #first;
  #socket;
  #heartbeat;
  #retry;
  #count = 0;
  #ended;
  #end;
  #leaving = false;
  /** Whether what is sent reaches the session. */
  #attached = false;
  /** Ends the wait for another socket; null when there is none. */
  #patience = null;
  #tries = 0;
  /** What waits for the next socket. @type {[string, object][]} */
  #held = [];
  /**
   * What a resume shows, and for how many ms the session waits for it, when it has one.
   *
   * @type {{id: string, token: string, graceMs: number} | null}
   */
  #resumable = null;
  #lastSeq = 0;

  /**
   * Connect, and open the session as soon as the socket is.
   *
   * @param {string} apiKey empty when the server wants none
   * @param {object} session
   * @param {ConnectionListener} listener
   */
  constructor(apiKey, session, listener) {
    // A page cannot set headers on a WebSocket; the key travels as a subprotocol.
    this.#protocols = apiKey ? ["realtime", `openai-insecure-api-key.${apiKey}`] : [];
    this.#listener = listener;
    this.#first = session;
    this.#ended = new Promise((resolve) => (this.#end = resolve));
    this.#connect();
    this.#heartbeat = setInterval(() => {
      if (this.#attached) this.send("session.heartbeat");
    }, HEARTBEAT_MS);
  }

  #connect() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    this.#socket = new WebSocket(`${scheme}://${location.host}${PATH}`, this.#protocols);
    this.#socket.onopen = () => this.#open();
    this.#socket.onmessage = ({ data }) => this.#receive(JSON.parse(data));
    this.#socket.onclose = ({ code, reason }) => this.#lost(code, reason);
  }

  #open() {
    if (this.#resumable) {
      this.#write("session.resume", {
        session_id: this.#resumable.id,
        resume_token: this.#resumable.token,
        last_received_server_event_seq: this.#lastSeq,
      });
    } else {
      this.#attached = true;
      this.send("session.update", { session: this.#first });
    }
  }

  /** @param {WireEvent} event */
  #receive(event) {
    if (event.resume_token) {
      this.#resumable = {
        id: event.session.id,
        token: event.resume_token,
        graceMs: event.disconnect_grace_s * 1000,
      };
    }
    this.#lastSeq = Math.max(this.#lastSeq, event.server_event_seq ?? 0);
    this.#listener.onEvent(event);
    if (event.type === "session.resumed") this.#cameBack();
  }

  #lost(code, reason) {
    this.#attached = false;
    const cut = CUTS.includes(`${code} ${reason}`) && this.#resumable && !this.#leaving;
    if (cut) this.#comeBack();
    else this.#finish(this.#leaving ? 1000 : code, reason);
  }

  #comeBack() {
    if (this.#patience === null) {
      const graceMs = Math.min(this.#resumable.graceMs, LONGEST_TIMER_MS);
      this.#patience = setTimeout(() => this.#giveUp(1006), graceMs);
      this.#tries = 0;
      this.#listener.onCut();
    }
    const [shortest, longest] = BACKOFF_MS;
    const waitMs = this.#tries && Math.min(longest, shortest * 2 ** (this.#tries - 1));
    this.#tries += 1;
    this.#retry = setTimeout(() => this.#connect(), waitMs);
  }

  #cameBack() {
    clearTimeout(this.#patience);
    this.#patience = null;
    this.#attached = true;
    for (const [type, fields] of this.#held.splice(0)) this.send(type, fields);
  }

  #giveUp(code) {
    this.leave();
    this.#finish(code, "");
  }

  #finish(code, reason) {
    clearInterval(this.#heartbeat);
    clearTimeout(this.#patience);
    this.#listener.onClose(code, reason);
    this.#end();
  }

  /**
   * Send an event: when the socket is cut, after it is replaced; not when there is no session.
   *
   * @param {string} type
   * @param {object} [fields]
   */
  send(type, fields = {}) {
    if (this.#attached) this.#write(type, fields);
    else if (this.#patience !== null) this.#held.push([type, fields]);
  }

  #write(type, fields) {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    this.#count += 1;
    this.#socket.send(JSON.stringify({ type, event_id: `evt_${this.#count}`, ...fields }));
  }

  /** Say goodbye; returns when the session is over. */
  async close() {
    this.#leaving = true;
    if (this.#patience !== null) {
      this.#giveUp(1000);
      return;
    }
    this.send("session.close");
    const timer = setTimeout(() => this.#socket.close(1000), CLOSE_TIMEOUT_MS);
    await this.#ended;
    clearTimeout(timer);
  }

  /** Say goodbye and go, without waiting for an answer; the listener hears nothing more. */
  leave() {
    this.send("session.close");
    clearInterval(this.#heartbeat);
    clearTimeout(this.#patience);
    clearTimeout(this.#retry);
    this.#socket.onopen = this.#socket.onmessage = this.#socket.onclose = null;
    this.#socket.close(1000);
  }
}
