import type { IncomingMessage } from 'node:http';
import { createParamDecorator } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Caller } from './caller';
import type { PlantStoreError, RequestOutcome } from '../errors/errors';

/** Notes of guard, pipe, controller and filter about a request, for each other and for metrics and logs. */
export interface RequestNotes {
  /** Who sends the request. The bearer guard sets it, or a guard of the host. */
  caller?: Caller;
  /** The id of the new plant, once its content is valid. */
  plantId?: bigint;
  /** Only for requests to create a plant: only the controller and the filter of this route set it. */
  outcome?: RequestOutcome | undefined;
  /** The error of the response. The exception filter sets it. */
  failure?: PlantStoreError;
}

/** A request as Nest passes it on: Fastify wraps the request of Node.js, Express extends it. */
export type HostRequest = (IncomingMessage | { readonly raw: IncomingMessage }) & {
  /** The body as a parser of the host parsed it. */
  readonly body?: unknown;
  /** The body as it arrived: its bytes with Nest's option `rawBody: true`, or the text that another parser keeps. */
  readonly rawBody?: Buffer | string;
  /** The request id, set by Fastify or by middleware of the host. */
  readonly id?: unknown;
  /** Set by {@link notesOf}, or by a guard of the host that names the caller. */
  plantStore?: RequestNotes;
};

/** Returns the notes about a request. They are empty at first. */
export function notesOf(request: HostRequest): RequestNotes {
  request.plantStore ??= {};
  return request.plantStore;
}

/** Returns the caller that the guard has noted; undefined if it noted none, or one without a name. */
export function callerOf({ caller }: RequestNotes): Caller | undefined {
  return typeof caller?.name === 'string' ? caller : undefined;
}

/** Returns the request of Node.js in a request of Fastify or Express. */
export function nodeRequest(request: HostRequest): IncomingMessage {
  return 'raw' in request ? request.raw : request;
}

/**
 * Returns the path of a request target, RFC 9112 section 3.2. It is `/` for a URL without a path. The query, the
 * fragment and the authority may contain secrets.
 */
export function pathOf(target: string): string {
  const [withoutQuery = ''] = target.split(/[?#]/, 1);
  // Without the scheme and the authority of a URL.
  return withoutQuery.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '') || '/';
}

/**
 * Returns every value of a header, in the order sent. `headers` of Node.js may keep only one of several `Authorization`
 * or `Content-Type` headers, so `rawHeaders` is read. It is empty behind `serverless-http`.
 * @param name the name of the header in lower case
 */
export function headerValues({ headers, rawHeaders }: IncomingMessage, name: string): string[] {
  const value = headers[name];
  if (value === undefined || rawHeaders.length === 0) return [value ?? []].flat();
  const values: string[] = [];
  // It contains names and values alternately.
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const header = rawHeaders[at];
    if (header?.length !== name.length || header.toLowerCase() !== name) continue;
    values.push(rawHeaders[at + 1] ?? '');
  }
  return values;
}

/** `@ParsesRawBody(true)` marks a route that parses `rawBody` itself, so that no parser of JSON needs to run before. */
export const ParsesRawBody = Reflector.createDecorator<boolean>();

/** `@InsertsPlants(true)` marks a route whose requests wait in the queue of the store. */
export const InsertsPlants = Reflector.createDecorator<boolean>();

/** Passes the request to a pipe. A global `ValidationPipe` of a host skips parameters of its type, `custom`. */
export const HttpRequest = createParamDecorator((_: unknown, context) =>
  context.switchToHttp().getRequest<HostRequest>(),
);
