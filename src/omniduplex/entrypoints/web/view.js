/** The page's controls and indicators; knows elements, not sessions. */

const TEXTS = {
  off: ["Ready", "Start, talk, and talk over the answer whenever you like."],
  connecting: ["Connecting", "Waiting for the server and the microphone."],
  reconnecting: ["Reconnecting", "The connection broke; what came is played on."],
  listening: ["Listening", "Say something."],
  thinking: ["Thinking", "The answer is on its way."],
  speaking: ["Speaking", "Talk over it to interrupt, or press Escape."],
  interrupted: ["Interrupted", "The answer was cut; you have the floor."],
};
const SPEAKING_TO_THE_END = "It is said to its end; Escape stops it.";
/** Policies that need a model whose answers can be stopped. */
const INTERRUPTING = ["barge_in_on_speech", "adaptive"];
const TOAST_MS = 10_000;
const MOST_TOASTS = 3;
/** Bottom of the level meter, in dB of full scale. */
const FLOOR_DB = -60;

/** @param {string} id */
const byId = (id) => document.getElementById(id);

/**
 * @typedef {object} Status everything the controls depend on
 * @property {import("./conversation.js").State} state
 * @property {import("./conversation.js").Latency | null} latency
 * @property {boolean} userSpeaking
 * @property {boolean} speechInterrupts
 * @property {boolean} canInterrupt
 * @property {boolean} hasMicrophone
 */

/** The document, as the application sees it. */
export class View {
  transcript = byId("transcript");
  timeline = byId("timeline");

  /** What the settings say. */
  get settings() {
    return {
      instructions: byId("instructions").value.trim(),
      turnDetection: byId("turn-detection").value,
      overlapPolicy: byId("overlap-policy").value,
      apiKey: byId("api-key").value,
    };
  }

  /**
   * @param {{toggle(): void, mute(): void, interrupt(): void, say(text: string): void}} actions
   */
  bind({ toggle, mute, interrupt, say }) {
    byId("start").onclick = toggle;
    byId("mute").onclick = mute;
    byId("interrupt").onclick = interrupt;
    byId("composer").onsubmit = (event) => {
      event.preventDefault();
      const text = byId("message").value.trim();
      byId("message").value = "";
      if (text) say(text);
    };
    document.addEventListener("keydown", (event) => {
      const typing = event.target.closest("input, textarea, select");
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Escape" && !byId("interrupt").disabled) interrupt();
      if (event.key === "m" && !typing && !byId("mute").disabled) mute();
    });
  }

  /** Say that typing is all this page can do. */
  warnInsecure() {
    byId("insecure").hidden = false;
  }

  /**
   * Offer what the model of the server can do; what it cannot is not chosen any more.
   *
   * @param {boolean} interruption
   */
  offer(interruption) {
    const policy = byId("overlap-policy");
    for (const option of policy.options) {
      option.disabled = !interruption && INTERRUPTING.includes(option.value);
    }
    if (policy.selectedOptions[0].disabled) policy.value = "";
  }

  /** @param {Status} status */
  show({ state, latency, userSpeaking, speechInterrupts, canInterrupt, hasMicrophone }) {
    const [title, usual] = TEXTS[state];
    document.body.dataset.state = state;
    setText(byId("state"), title);
    const hearing = state === "listening" && userSpeaking;
    const hint = state === "speaking" && !speechInterrupts ? SPEAKING_TO_THE_END : usual;
    setText(byId("hint"), hearing ? "Hearing you." : hint);
    setText(byId("latency"), latency ? `${latency.ms} ms` : "–");
    if (latency) setText(byId("origin"), `${latency.origin} to first sound`);
    const on = state !== "off" && state !== "connecting";
    setText(byId("start"), state === "off" ? "Start" : "Stop");
    byId("start").disabled = state === "connecting";
    byId("mute").disabled = !on || !hasMicrophone;
    byId("interrupt").disabled = !on || !canInterrupt;
    for (const id of ["message", "send"]) byId(id).disabled = !on;
    for (const field of byId("options").elements) field.disabled = state !== "off";
  }

  /** @param {string} name */
  showModel(name) {
    byId("model").textContent = name;
  }

  /** @param {boolean} muted */
  showMuted(muted) {
    byId("mute").setAttribute("aria-pressed", String(muted));
    byId("mute").textContent = muted ? "Unmute" : "Mute";
    byId("level").classList.toggle("muted", muted);
  }

  /** @param {number} level rms from 0 to 1 */
  showMicrophone(level) {
    const db = Math.max(FLOOR_DB, Math.round(20 * Math.log10(level)));
    const meter = byId("level");
    meter.setAttribute("aria-valuenow", String(db));
    meter.setAttribute("aria-valuetext", db > FLOOR_DB ? `${db} dB` : "silent");
    meter.firstElementChild.style.transform = `scaleX(${1 - db / FLOOR_DB})`;
  }

  /** @param {number} level rms from 0 to 1 of whoever speaks */
  showPulse(level) {
    document.body.style.setProperty("--level", Math.min(1, Math.sqrt(level)).toFixed(2));
  }

  /**
   * @param {string} code
   * @param {string} message
   */
  showError(code, message) {
    const toast = document.createElement("div");
    toast.className = "toast";
    const [name, text, close] = ["code", "p", "button"].map((tag) => document.createElement(tag));
    name.textContent = code;
    text.textContent = message;
    close.textContent = "✕";
    close.setAttribute("aria-label", `Dismiss ${code}`);
    close.onclick = () => toast.remove();
    toast.append(name, close, text);
    byId("toasts").append(toast);
    setTimeout(() => toast.remove(), TOAST_MS);
    while (byId("toasts").children.length > MOST_TOASTS) byId("toasts").firstChild.remove();
  }
}

/** Write only what is new, so that live regions speak only of changes. */
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
