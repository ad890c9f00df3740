import type { Caller } from '../http/caller';
import type { ServiceAuthOptions } from './auth.options';

interface ScopeDescription {
  /** The option that says which scope tokens of an issuer grant it. Without it, the option `scope` counts. */
  readonly option: keyof ServiceAuthOptions;
  /** The right that a token with this scope has, as it follows the word "may". */
  readonly description: string;
}

/** The scopes to which tokens can be limited. */
export const SCOPES = {
  create: { option: 'scope', description: 'create plants' },
  metrics: { option: 'metricsScope', description: 'read /metrics' },
} as const satisfies Record<string, ScopeDescription>;

/** The name of a scope, as in `scope=create`. */
export type Scope = keyof typeof SCOPES;

/** All scopes, in the order in which messages list them. */
export const scopeNames = Object.keys(SCOPES) as readonly Scope[];

/** The caller and the permissions of a valid token. */
export interface Grant {
  readonly caller: Caller;
  /** For each scope that the token lacks, the scope tokens that it would need, RFC 6749 section 3.3. */
  readonly missingScopes: Readonly<Partial<Record<Scope, string>>>;
}
