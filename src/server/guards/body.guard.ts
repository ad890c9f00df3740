import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { BodyTooLargeError, MalformedRequestError } from '../../plants/errors/errors';
import { decodeBody, hasBody } from '../../plants/http/body';
import { assertJsonContent } from '../../plants/http/media-type';
import { ParsesRawBody } from '../../plants/http/request';
import { toNotJsonError } from '../../plants/plant/json';

/** A request of Fastify, whose parsers are not used: they would read the body before the guards run. */
interface UnreadRequest {
  readonly raw: IncomingMessage;
  rawBody?: Buffer;
  body?: unknown;
}

/**
 * Reads the body of a request into `rawBody`, as the option `rawBody: true` of Nest does. For a route that does not
 * parse it itself, it also parses JSON into `body`, for `@Body()`. Must be the last guard: the body of a request that
 * another guard rejects is not read.
 */
export class BodyGuard implements CanActivate {
  private readonly reflector = new Reflector();

  /** @param limit the maximum number of bytes of a body */
  constructor(private readonly limit: number) {}

  /** @throws PlantStoreError 40000, 40001, 40004 or 40005 when the body cannot be read or parsed */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    const request = http.getRequest<UnreadRequest>();
    const message = request.raw;
    if (!hasBody(message)) return true;
    const { raw: response } = http.getResponse<{ readonly raw: ServerResponse }>();
    if (this.reflector.get(ParsesRawBody, context.getHandler())) {
      request.rawBody = await readBody(message, response, this.limit);
      return true;
    }

    // Clients send a POST without content with `Content-Length: 0`.
    const { 'content-type': type, 'content-length': length } = message.headers;
    if (type === undefined && length === '0') return true;
    assertJsonContent(message);
    request.rawBody = await readBody(message, response, this.limit);
    request.body = parseBody(request.rawBody);
    return true;
  }
}

/** Reads an unread body. @throws PlantStoreError when it is larger than the limit in bytes, or incomplete */
function readBody(
  message: IncomingMessage,
  response: ServerResponse,
  limit: number,
): Promise<Buffer> {
  if (Number(message.headers['content-length'] ?? 0) > limit) throw new BodyTooLargeError(limit);
  // RFC 9110 section 10.1.1: not in HTTP/1.0. Another expectation than `100-continue` was rejected before.
  if (message.headers.expect !== undefined && message.httpVersion !== '1.0') {
    response.writeContinue();
  }
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const receive = (chunk: Buffer): void => {
      chunks.push(chunk);
      size += chunk.length;
      if (size <= limit) return;
      // Discard the rest until the response is sent. A body without Content-Length may never end.
      message.off('data', receive).resume();
      reject(new BodyTooLargeError(limit));
    };
    const fail = (): void => {
      reject(new MalformedRequestError('The request ended before its body was complete.'));
    };
    // The client may have disconnected while the other guards ran.
    if (message.destroyed) fail();
    message.on('data', receive).on('error', fail).on('close', fail);
    message.on('end', () => {
      // The request closes after each body: an error for it would cost every request a stack trace.
      message.off('close', fail);
      resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks));
    });
  });
}

function parseBody(bytes: Buffer): unknown {
  const text = decodeBody(bytes);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw toNotJsonError(error, text);
  }
}
