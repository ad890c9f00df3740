import { OperatorError } from '../../plants/errors/operator.error';

/**
 * Reads a variable; undefined if it is empty or not set. The health check uses this file, so it imports next to nothing.
 * @throws OperatorError when the value is in quotation marks
 */
export function readText(name: string, environment = process.env): string | undefined {
  const text = environment[name]?.trim() ?? '';
  // A mark alone, or the same mark at both ends.
  const isQuoted = /^(["'`])(?:.*\1)?$/s.test(text);
  if (isQuoted) {
    throw new OperatorError(
      `${name} must not be in quotation marks: some programs, such as docker --env-file, do not remove them.`,
    );
  }
  return text === '' ? undefined : text;
}
