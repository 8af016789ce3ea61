/** The WebSocket to the server this page came from: JSON events both ways. */

const PATH = "/v1/realtime?duplex=1&autostart=0";
/** Keeps a session alive whose user only types; far below the server's patience of minutes. */
const HEARTBEAT_MS = 30_000;
/** How long a closing server gets for its last words. */
const CLOSE_TIMEOUT_MS = 2_000;

/**
 * @typedef {{type: string} & Record<string, any>} WireEvent
 *
 * @typedef {object} ConnectionListener
 * @property {(event: WireEvent) => void} onEvent
 * @property {(code: number, reason: string) => void} onClose once, whoever closed it
 */

/** One session on one socket. */
export class Connection {
  #socket;
  #heartbeat;
  #count = 0;
  #closed;

  /**
   * @param {string} apiKey empty when the server wants none
   * @param {ConnectionListener} listener
   */
  constructor(apiKey, listener) {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    // A page cannot set headers on a WebSocket; the key travels as a subprotocol.
    const protocols = apiKey ? ["realtime", `openai-insecure-api-key.${apiKey}`] : [];
    this.#socket = new WebSocket(`${scheme}://${location.host}${PATH}`, protocols);
    this.#socket.onmessage = ({ data }) => listener.onEvent(JSON.parse(data));
    this.#closed = new Promise((resolve) => {
      this.#socket.onclose = ({ code, reason }) => {
        clearInterval(this.#heartbeat);
        listener.onClose(code, reason);
        resolve();
      };
    });
    this.#heartbeat = setInterval(() => this.send("session.heartbeat"), HEARTBEAT_MS);
  }

  /**
   * Open the session as soon as the socket is.
   *
   * @param {object} session
   */
  open(session) {
    this.#socket.onopen = () => this.send("session.update", { session });
  }

  /**
   * Send an event, or drop it when the socket is not open: then nobody is there to hear it.
   *
   * @param {string} type
   * @param {object} [fields]
   */
  send(type, fields = {}) {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    this.#count += 1;
    this.#socket.send(JSON.stringify({ type, event_id: `evt_${this.#count}`, ...fields }));
  }

  /** Say goodbye; returns when the socket is closed. */
  async close() {
    this.send("session.close");
    const timer = setTimeout(() => this.#socket.close(1000), CLOSE_TIMEOUT_MS);
    await this.#closed;
    clearTimeout(timer);
  }

  /** Say goodbye and go, without waiting for an answer; the listener hears nothing more. */
  leave() {
    this.send("session.close");
    clearInterval(this.#heartbeat);
    this.#socket.onmessage = this.#socket.onclose = null;
    this.#socket.close(1000);
  }
}
