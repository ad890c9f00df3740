import { Reflector } from '@nestjs/core';

/** What tokens may be limited to: creating plants, and reading the metrics. */
export const scopes = ['create', 'metrics'] as const;

/** One of {@link scopes}. */
export type Scope = (typeof scopes)[number];

/**
 * Declares the scope that a token needs for a route.
 *
 * @default 'create'
 * @example
 * ```ts
 * @RequiredScope('metrics')
 * ```
 */
export const RequiredScope = Reflector.createDecorator<Scope>();

/** The fields of an entry in a token list. */
export interface EntryFields {
  /** Undefined when the entry names none, so that the token has all scopes. */
  readonly scopes: readonly Scope[] | undefined;
  /** The other fields, in their order. */
  readonly rest: string[];
}

/**
 * Splits the fields of an entry in a token list into scopes, such as `scope=create`, and the rest.
 *
 * @returns undefined when there is no such scope
 */
export function splitScopes(fields: readonly string[]): EntryFields | undefined {
  const given = fields.filter(isScopeField).map((field) => field.slice(PREFIX.length));
  if (!given.every(isScope)) return undefined;
  return {
    scopes: given.length === 0 ? undefined : scopes.filter((scope) => given.includes(scope)),
    rest: fields.filter((field) => !isScopeField(field)),
  };
}

/** Formats scopes as fields of an entry, for {@link splitScopes}. */
export function formatScopes(some: readonly Scope[] = []): string[] {
  return some.map((scope) => PREFIX + scope);
}

/** Whether a text is the name of a scope. */
export function isScope(text: string): text is Scope {
  return scopes.some((scope) => scope === text);
}

/** Whether a field of an entry names a scope, which need not exist. */
export function isScopeField(field: string): boolean {
  return field.startsWith(PREFIX);
}

const PREFIX = 'scope=';
