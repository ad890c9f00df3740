import { NotJsonError } from './errors/errors';
import { parseInt64 } from './int64';

interface Context {
  /** The text of a number. TypeScript does not declare it. */
  readonly source?: string;
}
type Parse = (
  text: string,
  reviver: (key: string, value: unknown, of: Context) => unknown,
) => unknown;

/**
 * Parses JSON. An `id` that is a number whose exact value is an int64 becomes a bigint, because `JSON.parse` rounds
 * numbers to doubles. If a property occurs twice, the last one is used.
 *
 * @throws NotJsonError when the text is not JSON, or is nested too deeply
 */
export function parseJson(text: string): unknown {
  // Restores an `id` in a nested object, too. Nobody reads it.
  const restoreId = (key: string, value: unknown, { source = '' }: Context): unknown =>
    key === 'id' && typeof value === 'number' ? (parseInt64(source) ?? value) : value;
  try {
    return (JSON.parse as Parse)(text, restoreId);
  } catch (error) {
    if (error instanceof RangeError) throw new NotJsonError('Not JSON: it is nested too deeply.');
    if (text.startsWith('\ufeff')) {
      throw new NotJsonError('Not JSON: it begins with a byte order mark.');
    }
    // The message may quote characters of the body.
    const reason = (error as Error).message.replaceAll(/[^ -~]/g, '?');
    throw new NotJsonError(`Not JSON: ${reason}`);
  }
}
