import { connect } from 'node:net';
import { HANG_MS } from './until';
import { splitResponses } from './wire';

/**
 * How a client disconnects. `read`: it reads the responses, then ends its side of the connection. `FIN`: it
 * ends its side as soon as it has sent everything. `RST`: it then resets the connection.
 */
export type Leaving = 'read' | 'FIN' | 'RST';

interface SegmentedExchange {
  /** Where a segment ends, as a fraction of all bytes, and the pause before it in turns of the event loop. */
  readonly segments: readonly { readonly at: number; readonly pause: number }[];
  readonly leaving: Leaving;
  /** The number of responses that the client reads before it ends its side. The service may end its side first. */
  readonly count: number;
}

/** Sends bytes in segments on a new connection. Returns the statuses of the responses without those of 100. */
export async function exchangeInSegments(
  url: URL,
  text: string,
  { segments, leaving, count }: SegmentedExchange,
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
  // The service may reset the connection. The statuses show what was received.
  socket.on('error', () => undefined);
  socket.setTimeout(HANG_MS, () => {
    received += '(the connection does not end)';
    socket.destroy();
  });
  const closed = new Promise((resolve) => socket.once('close', resolve));
  const ends = segments
    .map(({ at, pause }) => ({ at: Math.floor(at * text.length), pause }))
    .sort((a, b) => a.at - b.at);
  let sent = 0;
  for (const { at, pause } of [...ends, { at: text.length, pause: 1 }]) {
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

/** Returns the statuses of the responses, without those of 100 (Continue). */
function statusesOf(received: string): number[] {
  return splitResponses(received)
    .map(({ head }) => Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]))
    .filter((status) => status !== 100);
}
