import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { fieldValues, type HostRequest, nodeRequest } from '../http/node-request';

/** The content of a request, RFC 9110 section 6.4: the bytes, and what the head says of them. */
export interface RequestContent {
  /** Every `Content-Type` field sent. */
  readonly types: readonly string[];
  /** `Content-Encoding`, if sent. */
  readonly encoding: string | undefined;
  /** The bytes; undefined when there are none. */
  readonly bytes: Uint8Array | undefined;
}

/** Hands the content of the request, unparsed, to the pipes of a handler's parameter. */
export const RequestContent = createParamDecorator(
  (_data: unknown, context: ExecutionContext): RequestContent => {
    const request = context.switchToHttp().getRequest<HostRequest & { body?: Uint8Array }>();
    const message = nodeRequest(request);
    return {
      types: fieldValues(message, 'content-type'),
      encoding: message.headers['content-encoding'],
      bytes: request.body,
    };
  },
);
