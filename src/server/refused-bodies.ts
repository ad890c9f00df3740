import type { Socket } from 'node:net';

/** How many bytes of refused bodies are read in a millisecond: some 64 MiB a second. */
const PACE = 64 * 1024;

/** How long the body of a refused request waits at most, in milliseconds. */
const LONGEST_WAIT = 1000;

/** When the next refused body may be read, in milliseconds of `performance.now()`. */
let next = 0;

const delayed = new WeakSet<Socket>();

/**
 * Reads nothing more from a connection whose request is refused, until it is the turn of the body. At
 * full speed such bodies would come faster than the memory they take is collected, and take
 * processor time from the accepted bodies.
 *
 * @param size bytes that the body may have
 */
export function delayBody(socket: Socket, size: number): void {
  const now = performance.now();
  next = Math.max(now, next);
  const wait = Math.min(next - now, LONGEST_WAIT);
  next += size / PACE;
  // Node resumes the socket when it discards the request.
  const pause = (): void => {
    socket.pause();
  };
  pause();
  socket.on('resume', pause);
  delayed.add(socket);
  setTimeout(() => {
    delayed.delete(socket);
    socket.off('resume', pause).resume();
  }, wait);
}

/** Whether {@link delayBody} has stopped the reading from a connection. */
export function isBodyDelayed(socket: Socket): boolean {
  return delayed.has(socket);
}
