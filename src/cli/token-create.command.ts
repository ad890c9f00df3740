import type { Scope } from '../plants/auth/scopes';
import { createToken, TOKEN_NAME } from '../plants/auth/token-list';
import { lifetime } from '../server/settings/variable-parsers';
import { readText } from '../server/settings/variable-text';
import { print } from './print';
import { UsageError } from './usage.error';

interface Options {
  readonly name?: string;
  readonly expires?: number;
  readonly scope?: Scope[];
  readonly file?: string;
}

/** Creates a token, prints it, and appends its digest to a file. */
export function createAndPrintToken({
  scope: scopes,
  file = readText('AUTH_TOKENS_FILE'),
  ...rest
}: Options): void {
  if (!file) throw new UsageError('Pass the token file with --file, or set AUTH_TOKENS_FILE.');
  createToken(file, { ...rest, scopes }, print);
}

/** @throws UsageError when the text is not a name that a token can have */
export function parseName(text: string): string {
  if (TOKEN_NAME.test(text)) return text;
  throw new UsageError(
    '--name must be a letter followed by up to 63 letters, digits or _.@- characters.',
  );
}

/**
 * Parses a duration. Returns the time when it ends if it starts now, in milliseconds since 1970.
 * @throws UsageError when the text is not a duration
 */
export function parseExpiry(text: string): number {
  const duration = lifetime.parse(text);
  if (duration !== undefined) return Date.now() + duration;
  throw new UsageError(`--expires must be ${lifetime.expected}.`);
}
