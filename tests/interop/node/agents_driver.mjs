// npm `@openai/agents-realtime`: a RealtimeSession over its WebSocket transport.
import {
  OpenAIRealtimeWebSocket,
  RealtimeAgent,
  RealtimeSession,
  tool,
} from '@openai/agents-realtime';
import {
  Conversation,
  INSTRUCTIONS,
  REPORT,
  TOOL,
  hangUp,
  newReport,
  readArguments,
  versionOf,
  watch,
} from './talk.mjs';

const given = readArguments();
const report = newReport('@openai/agents-realtime', versionOf('@openai/agents-realtime'));
report.interruptions = 0;
report.not_understood = [];
watch(given, report);

/**
 * Tells which events the package let pass without understanding them: each event is emitted as
 * '*', and if it was as the package's schema says, again under its own type.
 */
class Transport extends OpenAIRealtimeWebSocket {
  #pending = null;

  emit(type, ...details) {
    if (type === '*') {
      if (this.#pending !== null) report.not_understood.push(this.#pending);
      this.#pending = details[0].type;
    } else if (type === this.#pending) {
      this.#pending = null;
    }
    return super.emit(type, ...details);
  }
}

const getWeather = tool({
  ...TOOL,
  strict: true,
  execute: ({ text }) => {
    report.calls.push(text);
    return REPORT;
  },
});
const agent = new RealtimeAgent({
  name: 'interop',
  instructions: INSTRUCTIONS,
  tools: given.mode === 'tool' ? [getWeather] : [],
});

// semantic_vad is the package's own default.
const detections = { none: null, server_vad: { type: 'server_vad', interruptResponse: true } };
const chosen = detections[given.vad];
const config = chosen === undefined ? {} : { audio: { input: { turnDetection: chosen } } };
const transport = new Transport({ url: `${given.url}/realtime?model=${given.model}` });
const session = new RealtimeSession(agent, { model: given.model, transport, config });

const bytes = (pcm) => pcm.buffer.slice(pcm.byteOffset, pcm.byteOffset + pcm.length);
const line = {
  append: (pcm) => session.sendAudio(bytes(pcm)),
  endTurn(pcm) {
    session.sendAudio(bytes(pcm), { commit: true });
    transport.sendEvent({ type: 'response.create' });
  },
  write: (text) => session.sendMessage(text),
  interrupt: () => session.interrupt(),
  answerCall() {}, // the session does it
};

const conversation = new Conversation(given, line, report);
session.on('error', ({ error }) => report.complaints.push(JSON.stringify(error)));
session.on('audio', ({ data }) => {
  report.played_bytes += data.byteLength;
});
session.on('audio_interrupted', () => {
  report.interruptions += 1;
});
session.on('transport_event', (event) => conversation.take(event));
// The session tells of the end of an answer after the server's own event.
session.on('agent_end', () => {
  if (conversation.over) hangUp(report);
});
await session.connect({ apiKey: 'sk-nobody' });
