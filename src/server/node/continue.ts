import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * Depends on what Node.js does and does not document, tried with 24.16 and 26.10: that a request emits
 * `resume` when its body is first read. `connections.spec.ts` fails when that changes.
 */

/** Sends 100 Continue once the body is read, RFC 9110 section 10.1.1, and never after an answer. */
export function continueOnceRead(request: IncomingMessage, response: ServerResponse): void {
  const sendContinue = (): void => {
    if (!response.headersSent) response.writeContinue();
  };
  const { headers, readableFlowing } = request;
  // RFC 9112 section 6.3
  const hasContent =
    headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  if (readableFlowing || !hasContent) {
    sendContinue();
  } else {
    // An answer without 100 Continue closes the connection. Whether that comes must be known before
    // the next request is parsed, so this one is the last.
    response.shouldKeepAlive = false;
    request.once('resume', sendContinue);
  }
}
