import type { FastifyInstance, FastifyRequest } from 'fastify';
import {
  MalformedRequestError,
  MethodNotAllowedError,
  NotFoundError,
  NotImplementedError,
  type PlantStoreError,
} from '../errors';
import { fieldValues } from './node-request';

/**
 * What is wrong with the head of a request, before anybody looks at its body: rules of HTTP that
 * Node leaves to the application, or answers with an empty body.
 */
export function faultOfHead(
  request: FastifyRequest,
  instance: FastifyInstance,
): PlantStoreError | undefined {
  const { raw } = request;
  if (raw.httpVersionMajor !== 1) {
    return new MalformedRequestError('The request line must name HTTP/1.1 or HTTP/1.0.');
  }
  // RFC 9112 section 3.2
  const hosts = fieldValues(raw, 'host').length;
  if (hosts > 1 || (hosts === 0 && raw.httpVersionMinor > 0)) {
    return new MalformedRequestError('The request must have exactly one Host header.');
  }
  // RFC 9112 section 6.1
  const coding = raw.headers['transfer-encoding'];
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') {
    return new NotImplementedError('The only transfer coding supported is chunked.');
  }
  if (request.is404) {
    const allowed = methodsAt(request.url, instance);
    return allowed.length > 0 ? new MethodNotAllowedError(allowed) : new NotFoundError();
  }
  return undefined;
}

function methodsAt(target: string, instance: FastifyInstance): string[] {
  const [path = ''] = target.split('?', 1);
  return instance.supportedMethods.filter((method) =>
    instance.hasRoute({ method, url: safeDecode(path) }),
  );
}

function safeDecode(path: string): string {
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}
