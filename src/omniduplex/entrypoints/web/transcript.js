/** The live transcript: what the user said, and what of each answer was heard. */

/**
 * @typedef {{text_chars: number, audio_end_ms: number}} Mark where a prefix ends in the audio
 *
 * @typedef {object} Answer
 * @property {HTMLElement} line
 * @property {HTMLElement} heard
 * @property {HTMLElement} ahead
 * @property {string} text
 * @property {Mark[]} marks
 * @property {number} receivedMs
 */

/** Lines in a list; user lines by item id, answers by response id. */
export class Transcript {
  #list;
  #scroller;
  #atEnd = true;
  /** @type {Map<string, HTMLElement>} */
  #users = new Map();
  /** @type {Map<string, Answer>} */
  #answers = new Map();

  /** @param {HTMLElement} list in an element that scrolls */
  constructor(list) {
    this.#list = list;
    this.#scroller = list.parentElement;
    this.#scroller.addEventListener("scroll", () => {
      const { scrollTop, clientHeight, scrollHeight } = this.#scroller;
      this.#atEnd = scrollTop + clientHeight >= scrollHeight - 8;
    });
  }

  clear() {
    this.#list.replaceChildren();
    this.#users.clear();
    this.#answers.clear();
  }

  /** The user says something that has no words yet. */
  openUser(itemId) {
    if (this.#users.has(itemId)) return;
    const line = this.#addLine("user", "You");
    line.classList.add("pending");
    line.setAttribute("aria-busy", "true");
    line.append(element("p", "", "…"));
    this.#users.set(itemId, line);
  }

  /** Show the words; no words, no line. */
  setUser(itemId, text) {
    if (!text) return this.removeUser(itemId);
    this.openUser(itemId);
    const line = this.#users.get(itemId);
    line.classList.remove("pending");
    line.querySelector("p").textContent = text;
    line.removeAttribute("aria-busy");
    this.#scroll();
  }

  removeUser(itemId) {
    this.#users.get(itemId)?.remove();
    this.#users.delete(itemId);
  }

  /** Forget the lines that never got words. */
  dropPending() {
    for (const [itemId, line] of this.#users) {
      if (line.classList.contains("pending")) this.removeUser(itemId);
    }
  }

  /** Let an answer grow. */
  append(responseId, delta) {
    if (!delta) return;
    const answer = this.#answer(responseId);
    answer.text += delta;
    answer.ahead.textContent += delta;
    this.#scroll();
  }

  /**
   * @param {string} responseId
   * @param {number} receivedMs all audio of the answer so far
   * @param {Mark[]} marks
   */
  align(responseId, receivedMs, marks) {
    const answer = this.#answer(responseId);
    const last = answer.marks.at(-1)?.audio_end_ms ?? 0;
    answer.marks.push(...marks.filter((mark) => mark.audio_end_ms > last));
    answer.receivedMs = receivedMs;
  }

  /** Part the answer in what was heard and what is still ahead. */
  hear(responseId, heardMs) {
    const answer = this.#answers.get(responseId);
    if (!answer) return;
    const chars = charsAt(answer, heardMs);
    answer.heard.textContent = answer.text.slice(0, chars);
    answer.ahead.textContent = answer.text.slice(chars);
  }

  /** The answer is whole and was heard. */
  finish(responseId) {
    const answer = this.#answers.get(responseId);
    if (!answer) return;
    answer.heard.textContent = answer.text;
    answer.ahead.textContent = "";
    answer.line.removeAttribute("aria-busy");
  }

  /** The answer was cut here. */
  cut(responseId, heardMs) {
    const answer = this.#answers.get(responseId);
    if (!answer || answer.line.classList.contains("cut")) return;
    this.hear(responseId, heardMs);
    answer.line.classList.add("cut");
    answer.line.append(element("small", "note", `cut after ${(heardMs / 1000).toFixed(1)} s`));
    answer.line.removeAttribute("aria-busy");
    this.#scroll();
  }

  /** @returns {Answer} */
  #answer(responseId) {
    let answer = this.#answers.get(responseId);
    if (!answer) {
      const line = this.#addLine("model", "Model");
      line.setAttribute("aria-busy", "true");
      const [heard, ahead] = [element("span", "heard"), element("span", "ahead")];
      const paragraph = element("p");
      paragraph.append(heard, ahead);
      line.append(paragraph);
      answer = { line, heard, ahead, text: "", marks: [], receivedMs: 0 };
      this.#answers.set(responseId, answer);
    }
    return answer;
  }

  #addLine(kind, speaker) {
    const line = element("li", `line ${kind}`);
    line.append(element("span", "who", speaker));
    this.#list.append(line);
    this.#scroll();
    return line;
  }

  /** Follow the conversation, unless the reader went back to read. */
  #scroll() {
    if (this.#atEnd) this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }
}

/**
 * How much of the text belongs to the first ms: between marks in proportion, as without any.
 *
 * @param {Answer} answer
 * @param {number} ms
 * @returns {number}
 */
function charsAt({ text, marks, receivedMs }, ms) {
  let from = { text_chars: 0, audio_end_ms: 0 };
  for (const to of [...marks, { text_chars: text.length, audio_end_ms: receivedMs }]) {
    if (ms < to.audio_end_ms) {
      const share = (ms - from.audio_end_ms) / (to.audio_end_ms - from.audio_end_ms);
      return Math.floor(from.text_chars + share * (to.text_chars - from.text_chars));
    }
    from = to;
  }
  return text.length;
}

function element(tag, className = "", text = "") {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}
