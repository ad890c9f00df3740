import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { finished } from 'node:stream';

/** How long a client may go on sending behind its last answer, in milliseconds. */
const LINGER = 2000;

/** How much it may send beyond the body that it has announced, in bytes. */
const LINGER_BYTES = 2 ** 20;

/** How often the bytes are counted, in milliseconds. */
const INTERVAL = 50;

/**
 * Ends our side of a connection, then reads and drops what the client still sends, until it ends its
 * side or has sent too much, RFC 9112 section 9.6. Closing at once would reset the connection, and the
 * client would lose the answer.
 *
 * @param announced bytes that the client has said it sends
 */
export function endAndLinger(socket: Socket, announced = 0): void {
  socket.end();
  socket.resume();
  const limit = socket.bytesRead + announced + LINGER_BYTES;
  let time = 0;
  const counting = setInterval(() => {
    time += INTERVAL;
    if (socket.bytesRead > limit || time >= LINGER) socket.destroy();
  }, INTERVAL).unref();
  socket.once('close', () => {
    clearInterval(counting);
  });
}

/** How long the body of a client that may wait for `100 Continue` is looked for, in milliseconds. */
const UNASKED = 100;

/** Reads and drops the rest of a body before an answer that closes the connection, for a moment. */
export function dropBody(request: IncomingMessage, done: () => void): void {
  const limit = request.headers.expect === undefined ? LINGER : UNASKED;
  finished(request.resume(), { signal: AbortSignal.timeout(limit) }, () => {
    done();
  });
}
