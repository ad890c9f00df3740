import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Caller } from '../auth/caller';
import { idempotencyKeyOf } from '../idempotency-key';
import { type HostRequest, nodeRequest } from './node-request';

const requestOf = (context: ExecutionContext): HostRequest =>
  context.switchToHttp().getRequest<HostRequest>();

/**
 * The request, for a pipe that reads its body. To Nest it is a parameter of type `custom`, which a
 * global `ValidationPipe` of a host leaves alone.
 */
export const HttpRequest = createParamDecorator((_: unknown, context) => requestOf(context));

/** The idempotency key of the request, if it has one. Throws as {@link idempotencyKeyOf}. */
export const IdempotencyKey = createParamDecorator((_: unknown, context) =>
  idempotencyKeyOf(nodeRequest(requestOf(context))),
);

/** The caller of the request, if our guard or one of the host has set it. What has no name is no caller. */
export const CallerOfRequest = createParamDecorator((_: unknown, context): Caller | undefined => {
  const { caller } = requestOf(context);
  return typeof caller?.name === 'string' ? (caller as Caller) : undefined;
});
