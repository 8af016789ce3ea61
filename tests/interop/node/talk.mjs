// What every driver plays: one conversation, told by raw server events, over a client's own calls.
// The same as python/talk.py.
import fs from 'node:fs';
import { parseArgs } from 'node:util';

export const RATE_HZ = 24_000;
const CHUNK_MS = 40;
const CHUNK_BYTES = (2 * RATE_HZ * CHUNK_MS) / 1000;
// The user talks over an answer once this much of it has come.
const HEARD_BYTES = (2 * RATE_HZ * 300) / 1000;

export const QUESTION = 'How is the weather? Please call get_weather Paris';
export const REPORT = '21 degrees and sunny';
export const INSTRUCTIONS = 'Answer in one short sentence.';
export const TOOL = {
  name: 'get_weather',
  description: 'Tells the weather of a place.',
  parameters: {
    type: 'object',
    properties: { text: { type: 'string', description: 'The place.' } },
    required: ['text'],
    additionalProperties: false,
  },
};

/** Reads the command line; `speech` and `barge` become 24 kHz mono PCM16. */
export function readArguments() {
  const names = ['url', 'model', 'mode', 'vad', 'speech', 'barge', 'speed', 'timeout'];
  const options = Object.fromEntries(names.map((name) => [name, { type: 'string' }]));
  const { values } = parseArgs({ options });
  return {
    ...values,
    http: values.url.replace(/^ws/, 'http'),
    speech: fs.readFileSync(values.speech),
    barge: fs.readFileSync(values.barge),
    speed: Number(values.speed ?? 1),
    timeoutMs: 1000 * Number(values.timeout ?? 30),
  };
}

/** What a driver prints as one line of JSON; see Report in python/talk.py. */
export function newReport(client, version) {
  return {
    client,
    version,
    complaints: [],
    events: [],
    played_bytes: 0,
    calls: [],
    interruptions: null,
  };
}

let isOver = false;

/** The version of an installed package. */
export function versionOf(name) {
  const file = new URL(`node_modules/${name}/package.json`, import.meta.url);
  return JSON.parse(fs.readFileSync(file, 'utf8')).version;
}

/** Prints the report and ends the process, which open sockets would keep; only the first does. */
export function hangUp(report) {
  if (isOver) return;
  isOver = true;
  process.stdout.write(`${JSON.stringify(report)}\n`, () => process.exit(0));
}

/** Makes everything that nobody caught a complaint, and so is a conversation that never ends. */
export function watch(given, report) {
  const fail = (error) => {
    report.complaints.push(String(error?.stack ?? error));
    hangUp(report);
  };
  process.on('uncaughtException', fail);
  process.on('unhandledRejection', fail);
  setTimeout(() => fail(`not over after ${given.timeoutMs} ms`), given.timeoutMs);
}

/** Streams all the time: speech when there is some, else silence. */
class Microphone {
  #queued = Buffer.alloc(0);

  constructor(line, speed, endsTurns) {
    this.line = line;
    this.periodMs = CHUNK_MS / speed;
    this.endsTurns = endsTurns;
  }

  say(pcm) {
    this.#queued = Buffer.concat([this.#queued, pcm]);
  }

  stream(dueMs = performance.now()) {
    const chunk = Buffer.alloc(CHUNK_BYTES);
    const spoken = this.#queued.copy(chunk);
    this.#queued = this.#queued.subarray(spoken);
    const isLast = spoken > 0 && this.#queued.length === 0;
    if (isLast && this.endsTurns) this.line.endTurn(chunk);
    else this.line.append(chunk);
    const nextMs = dueMs + this.periodMs;
    setTimeout(() => this.stream(nextMs), nextMs - performance.now());
  }
}

/** Follows the server's events, does what the mode wants done, and knows when it is over. */
export class Conversation {
  over = false;
  #microphone;
  #begun = false;
  #interrupted = null;
  #heard = new Map();

  constructor(given, line, report) {
    this.given = given;
    this.line = line;
    this.report = report;
    this.#microphone = new Microphone(line, given.speed, given.vad === 'none');
  }

  /** Keeps a server event and reacts to it. */
  take(event) {
    this.report.events.push(withoutAudio(event));
    if (event.type === 'session.updated' && !this.#begun) this.#begin();
    else if (event.type === 'response.output_audio.delta') this.#hear(event);
    else if (event.type === 'response.done') this.#end(event.response);
  }

  #begin() {
    this.#begun = true;
    this.#microphone.stream();
    if (this.given.mode === 'tool') this.line.write(QUESTION);
    else this.#microphone.say(this.given.speech);
  }

  #hear({ response_id: id, delta }) {
    const heard = (this.#heard.get(id) ?? 0) + Buffer.from(delta, 'base64').length;
    this.#heard.set(id, heard);
    if (this.given.mode !== 'interrupt' || this.#interrupted || heard < HEARD_BYTES) return;
    this.#interrupted = id;
    if (this.given.vad === 'none') this.line.interrupt();
    this.#microphone.say(this.given.barge);
  }

  #end(response) {
    const calls = response.output.filter((item) => item.type === 'function_call');
    for (const call of calls) this.line.answerCall(call.call_id, REPORT);
    if (this.given.mode === 'interrupt')
      this.over = this.#interrupted !== null && this.#interrupted !== response.id;
    // A pause in mid-sentence may have ended the turn too soon: then it goes on.
    else this.over = calls.length === 0 && response.status !== 'cancelled';
  }
}

function withoutAudio(event) {
  if (event.type !== 'response.output_audio.delta') return event;
  return { ...event, delta: '', audio_bytes: Buffer.from(event.delta, 'base64').length };
}
