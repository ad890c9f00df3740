import { isIP } from 'node:net';
import proxyAddress from '@fastify/proxy-addr';
import { Logger } from '@nestjs/common';
import { errorCatalogue } from '../../plants/errors/errors';
import { LogThrottle, requestFields } from '../../plants/http/failure-log';
import type { Responses } from './responses';

/** The minimum time between two lines about the same address and reason. */
const LINE_INTERVAL_MS = 60_000;

/** The maximum number of addresses and reasons logged separately within that time. A client may have many addresses. */
const MAX_KINDS = 100;

/**
 * Logs rejected tokens with the client address and the reason: OWASP ASVS 5.0, 16.3.1 and 16.3.2. Requests
 * without a token are not logged.
 *
 * @param trustedProxies addresses and ranges of proxies whose `X-Forwarded-For` is trusted
 */
export function logRejectedCredentials(
  responses: Responses,
  trustedProxies: readonly string[],
): void {
  const logger = new Logger('Authentication');
  const isTrusted = proxyAddress.compile([...trustedProxies]);
  const throttle = new LogThrottle<string>(
    1,
    (kind, count) => {
      logger.warn(`Rejected ${count} more tokens within a minute, ${kind}`);
    },
    LINE_INTERVAL_MS,
  );
  responses.on('completed', (request) => {
    const { failure, raw, caller } = request;
    const { invalidToken, forbidden } = errorCatalogue;
    if (failure?.error !== invalidToken.error && failure?.error !== forbidden.error) return;
    const address = proxyAddress(raw, isTrusted);
    const from = isIP(address) ? address : 'an unknown address';
    const kind =
      throttle.kindCount < MAX_KINDS
        ? `from ${from}: ${failure.error} ${failure.message}`
        : 'from further addresses.';
    if (throttle.allow(kind)) {
      logger.warn(`Rejected a token ${kind}`, { ...requestFields(request), caller: caller?.name });
    }
  });
}
