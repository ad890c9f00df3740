/** Control and format characters, line and paragraph separators, and unpaired surrogates. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/**
 * Escapes what could forge a line on a terminal, or turn the direction of its text, as `\u{a}`. JSON escapes only a
 * part of it, and a terminal gets strings as they are.
 */
export function escapeInvisible(text: string): string {
  return text.replace(INVISIBLE, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return `\\u{${code.toString(16)}}`;
  });
}
