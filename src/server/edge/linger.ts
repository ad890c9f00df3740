import type { Socket } from 'node:net';

/** How long a client may keep sending after the final response. */
const LINGER_MS = 2000;

/** How much it may send beyond its `Content-Length`. */
const MAX_LINGER_BYTES = 2 ** 20;

/** How often the received bytes are counted. */
const POLL_INTERVAL_MS = 50;

/**
 * Ends our side of a connection. Then reads and discards what the client still sends, until it ends its
 * side, has sent too much, or takes too long, RFC 9112 section 9.6. Closing immediately would reset the
 * connection, and the client would lose the response.
 *
 * @param announced the `Content-Length` of the request, in bytes
 */
export function endAndLinger(socket: Socket, announced: number): void {
  socket.end();
  socket.resume();
  const limit = socket.bytesRead + announced + MAX_LINGER_BYTES;
  let elapsedMs = 0;
  const timer = setInterval(() => {
    elapsedMs += POLL_INTERVAL_MS;
    if (socket.bytesRead > limit || elapsedMs >= LINGER_MS) socket.destroy();
    if (socket.destroyed) clearInterval(timer);
  }, POLL_INTERVAL_MS).unref();
}
