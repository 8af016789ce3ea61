// npm `openai`: OpenAIRealtimeWS over `ws`.
import net from 'node:net';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import {
  Conversation,
  INSTRUCTIONS,
  RATE_HZ,
  TOOL,
  hangUp,
  newReport,
  readArguments,
  versionOf,
  watch,
} from './talk.mjs';

const given = readArguments();
const report = newReport('openai (Node)', versionOf('openai'));
watch(given, report);

// The package dials wss: whatever the base URL says; a server without TLS is reached by handing
// `ws` a plain connection, through the package's own options.
const options = { createConnection: ({ host, port }) => net.connect({ host, port }) };
const client = new OpenAI({ apiKey: 'sk-nobody', baseURL: given.http });
const realtime = new OpenAIRealtimeWS({ model: given.model, options }, client);
const send = (event) => realtime.send(event);

const line = {
  append: (pcm) => send({ type: 'input_audio_buffer.append', audio: pcm.toString('base64') }),
  endTurn(pcm) {
    this.append(pcm);
    send({ type: 'input_audio_buffer.commit' });
    send({ type: 'response.create' });
  },
  write(text) {
    const content = [{ type: 'input_text', text }];
    send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content } });
    send({ type: 'response.create' });
  },
  interrupt: () => send({ type: 'response.cancel' }),
  answerCall(callId, output) {
    const item = { type: 'function_call_output', call_id: callId, output };
    send({ type: 'conversation.item.create', item });
    send({ type: 'response.create' });
  },
};

const format = { type: 'audio/pcm', rate: RATE_HZ };
const detection = { type: given.vad, create_response: true, interrupt_response: true };
const session = {
  type: 'realtime',
  output_modalities: ['audio'],
  instructions: INSTRUCTIONS,
  tools: given.mode === 'tool' ? [{ type: 'function', ...TOOL }] : [],
  audio: {
    input: {
      format,
      transcription: { model: 'whisper-1' },
      turn_detection: given.vad === 'none' ? null : detection,
    },
    output: { format, voice: 'alloy' },
  },
};

const conversation = new Conversation(given, line, report);
realtime.on('error', (error) => report.complaints.push(error.message));
realtime.on('session.created', () => send({ type: 'session.update', session }));
realtime.on('response.output_audio.delta', (event) => {
  report.played_bytes += Buffer.from(event.delta, 'base64').length;
});
realtime.on('response.function_call_arguments.done', (event) => report.calls.push(event.arguments));
realtime.on('event', (event) => {
  conversation.take(event);
  if (conversation.over) hangUp(report);
});
