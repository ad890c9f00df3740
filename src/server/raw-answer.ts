import { STATUS_CODES } from 'node:http';
import { errorChannel, type PlantStoreError } from '../errors';
import { securityHeaders } from './security-headers';

/** The header fields and body of an error answer that neither Nest nor Fastify writes. */
export function errorAnswer(error: PlantStoreError): {
  headers: Record<string, string | number>;
  body: string;
} {
  errorChannel.publish(error);
  const body = JSON.stringify(error.body);
  return {
    headers: {
      ...securityHeaders,
      ...error.headers,
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': Buffer.byteLength(body),
      Connection: 'close',
    },
    body,
  };
}

/** An error answer as bytes on the wire, for a socket without a response object. */
export function rawErrorAnswer(error: PlantStoreError): string {
  const { headers, body } = errorAnswer(error);
  const status = error.getStatus();
  // RFC 9110 section 6.6.1
  const dated = { Date: new Date().toUTCString(), ...headers };
  const fields = Object.entries(dated).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${fields.join('')}\r\n${body}`;
}
