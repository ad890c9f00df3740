import type { IncomingMessage } from 'node:http';
import { MalformedRequestError, PlantStoreError } from '../../plants/errors/errors';
import { headerValues } from '../../plants/http/request';

/**
 * Returns the error of a request that proxies and servers are known to read differently, RFC 9112 sections 3.2
 * and 6.1, or that has an unknown expectation, RFC 9110 section 10.1.1. Node.js rejects other malformed headers.
 */
export function validateHeaders(request: IncomingMessage): PlantStoreError | undefined {
  const { headers, httpVersion } = request;
  const { length } = headerValues(request, 'host');
  if (length > 1 || (length === 0 && httpVersion !== '1.0')) {
    return new MalformedRequestError('The request must have exactly one Host header.');
  }
  const { expect, 'transfer-encoding': coding } = headers;
  if (coding !== undefined && (coding.toLowerCase() !== 'chunked' || httpVersion === '1.0')) {
    return new MalformedRequestError('The only Transfer-Encoding is chunked, in HTTP/1.1.');
  }
  const isMet = expect === undefined || /100-continue/i.test(expect);
  return isMet ? undefined : new PlantStoreError('expectationFailed');
}
