/** Who speaks when: two lanes of level bars over the last seconds, on a canvas. */

const SPAN_MS = 30_000;
const GRID_MS = 5_000;
const BAR_MS = 80;
/** Speech lies around 0.1 of full scale; the root spreads it over the lane. */
const LEVEL_EXPONENT = 0.5;

/**
 * @typedef {object} Bar
 * @property {number} at ms, the page's clock
 * @property {number} level from 0 to 1
 * @property {boolean} speech
 * @property {number} clockMs place in the session's audio; the user's lane only
 */

/** Draws itself while it is running; nothing moves when nothing is on. */
export class Timeline {
  #canvas;
  /** @type {Bar[]} */
  #user = [];
  /** @type {Bar[]} */
  #model = [];
  /** @type {number[]} */
  #cuts = [];
  #speech = false;
  #frame = 0;

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.#canvas = canvas;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#draw());
    new ResizeObserver(() => this.#draw()).observe(canvas);
  }

  start() {
    this.#user = [];
    this.#model = [];
    this.#cuts = [];
    this.#speech = false;
    const tick = () => {
      this.#draw();
      this.#frame = requestAnimationFrame(tick);
    };
    tick();
  }

  stop() {
    cancelAnimationFrame(this.#frame);
  }

  /**
   * @param {number} level
   * @param {number} clockMs
   */
  addUser(level, clockMs) {
    add(this.#user, { at: performance.now(), level, speech: this.#speech, clockMs });
  }

  /** @param {number} level */
  addModel(level) {
    add(this.#model, { at: performance.now(), level, speech: true, clockMs: 0 });
  }

  /** The server heard speech that began here, which is a while ago. */
  speechStarted(clockMs) {
    this.#speech = true;
    for (const bar of this.#user) bar.speech ||= bar.clockMs >= clockMs;
  }

  speechStopped() {
    this.#speech = false;
  }

  cut() {
    add(this.#cuts, performance.now());
  }

  #draw() {
    const { width, height, context } = this.#prepare();
    const colours = getComputedStyle(this.#canvas);
    const now = performance.now();
    const lane = height / 2;
    const x = (at) => width - ((now - at) / SPAN_MS) * width;
    drawGrid(context, width, height, colours.getPropertyValue("--line"));
    const barWidth = Math.max(1, (width * BAR_MS) / SPAN_MS - 0.5);
    const quiet = colours.getPropertyValue("--quiet");
    const paint = (bars, top, loud) => {
      for (const { at, level, speech } of bars) {
        const size = Math.max(2, Math.min(1, level ** LEVEL_EXPONENT) * (lane - 8));
        context.fillStyle = speech ? loud : quiet;
        context.fillRect(x(at) - barWidth, top + (lane - size) / 2, barWidth, size);
      }
    };
    paint(this.#user, 0, colours.getPropertyValue("--user"));
    paint(this.#model, lane, colours.getPropertyValue("--model"));
    context.fillStyle = colours.getPropertyValue("--cut");
    for (const at of this.#cuts) context.fillRect(x(at) - 1, lane + 3, 2, lane - 6);
  }

  #prepare() {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const scale = devicePixelRatio;
    const [deviceWidth, deviceHeight] = [Math.round(width * scale), Math.round(height * scale)];
    if (this.#canvas.width !== deviceWidth || this.#canvas.height !== deviceHeight) {
      this.#canvas.width = deviceWidth;
      this.#canvas.height = deviceHeight;
    }
    const context = this.#canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    return { width, height, context };
  }
}

function add(entries, entry) {
  const horizon = performance.now() - SPAN_MS - BAR_MS;
  while (entries.length > 0 && (entries[0].at ?? entries[0]) < horizon) entries.shift();
  entries.push(entry);
}

function drawGrid(context, width, height, colour) {
  context.fillStyle = colour;
  context.fillRect(0, Math.round(height / 2), width, 1);
  for (let ms = GRID_MS; ms < SPAN_MS; ms += GRID_MS) {
    context.fillRect(Math.round(width - (ms / SPAN_MS) * width), 0, 1, height);
  }
}
