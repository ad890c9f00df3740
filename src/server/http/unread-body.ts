/*
 * Depends on undocumented behavior of Fastify (tested: 5.12.8): if a response has been begun, it only pipes the stream
 * that a hook returns. It warns in its own log, which the service does not use.
 */
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { hasBody } from '../../plants/http/body';

/** Beyond this number of bytes, the rest of a body is not waited for. */
const MAX_DISCARDED_BYTES = 16 * 2 ** 20;

/** How long to wait for the next bytes of a body. `REQUEST_TIMEOUT` limits the whole time. */
const IDLE_MS = 2000;

/** Whether the rest of a body may still arrive, although the response is known. */
export function isIncomplete(message: IncomingMessage): boolean {
  // A request that is injected without a socket never becomes `complete`.
  if (message.complete || message.readableEnded) return false;
  return hasBody(message) && message.headers['content-length'] !== '0';
}

/** Whether a client may still wait for `100 Continue`, and not send the body, RFC 9110 section 10.1.1. */
export function mayWaitForContinue(message: IncomingMessage): boolean {
  return message.headers.expect !== undefined && !message.readableDidRead;
}

/**
 * Sends a response to a request whose body is incomplete. Returns a stream of nothing more, for Fastify, which ends once
 * the rest of the body has arrived and been discarded, up to a bound. If the connection were closed before, the kernel
 * would reset it because of the unread bytes, and a client that sends its whole request before it reads, such as a
 * proxy, would lose the response.
 */
export function sendBeforeBody(
  { raw: message }: FastifyRequest,
  reply: FastifyReply,
  content: string,
): Readable {
  const { raw: response } = reply.header('Content-Length', Buffer.byteLength(content));
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) response.setHeader(name, value);
  }
  // At once: if the parser rejects the body in this turn, `Connections` must see that the response is sent.
  response.write(content);
  const nothing = new Readable({ read: () => undefined });
  discardBody(message, () => nothing.push(null));
  return nothing;
}

/** @param onEnd called once the body has ended or its client has disconnected, or at the bound */
function discardBody(message: IncomingMessage, onEnd: () => void): void {
  const timer = setTimeout(onEnd, IDLE_MS).unref();
  const stop = (): void => {
    clearTimeout(timer);
    onEnd();
  };
  let discarded = 0;
  message.on('end', stop).on('close', stop);
  message.on('data', ({ length }: Buffer) => {
    timer.refresh();
    discarded += length;
    if (discarded > MAX_DISCARDED_BYTES) stop();
  });
}
