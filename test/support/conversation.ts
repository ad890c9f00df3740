import { connect } from 'node:net';
import { HANG_MS } from './until';
import { splitAnswers } from './wire';

/**
 * How a client leaves: it reads its answers and then ends its side, or it ends its side or resets the
 * connection as soon as it has sent all.
 */
export type Leaving = 'read' | 'FIN' | 'RST';

interface Conversation {
  /** Where the bytes are cut, as shares of them, and the pauses before each segment, in ticks. */
  readonly segments: readonly { readonly at: number; readonly pause: number }[];
  readonly leaving: Leaving;
  /** How many answers the client reads before it ends its side; unless the service ends first. */
  readonly count: number;
}

/** Sends a text on a connection of its own, in segments, and gives back the final statuses that came. */
export async function converse(
  url: URL,
  text: string,
  { segments, leaving, count }: Conversation,
): Promise<number[]> {
  const socket = connect({ port: Number(url.port), host: url.hostname, allowHalfOpen: true });
  socket.setNoDelay();
  let received = '';
  let isSent = false;
  const endWhenRead = (): void => {
    const isRead = socket.readableEnded || statusesOf(received).length >= count;
    if (isSent && isRead) socket.end();
  };
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
    endWhenRead();
  });
  socket.on('end', endWhenRead);
  // A client that has left is not told.
  socket.on('error', () => undefined);
  socket.setTimeout(HANG_MS, () => {
    received += '(the connection does not end)';
    socket.destroy();
  });
  const closed = new Promise((resolve) => socket.once('close', resolve));
  const cuts = segments
    .map(({ at, pause }) => ({ at: Math.floor(at * text.length), pause }))
    .sort((a, b) => a.at - b.at);
  let sent = 0;
  for (const { at, pause } of [...cuts, { at: text.length, pause: 1 }]) {
    for (let tick = 0; tick < pause; tick++) await new Promise(setImmediate);
    socket.write(text.slice(sent, at), 'latin1');
    sent = at;
  }
  if (leaving === 'RST') setImmediate(() => socket.resetAndDestroy());
  else if (leaving === 'FIN') socket.end();
  else {
    isSent = true;
    endWhenRead();
  }
  await closed;
  return statusesOf(received);
}

/** The final statuses in what came over the wire. */
function statusesOf(received: string): number[] {
  return splitAnswers(received)
    .map(({ head }) => Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]))
    .filter((status) => status !== 100);
}
