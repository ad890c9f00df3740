import { Logger } from '@nestjs/common';

/** What the calling file or `describe` logs during a test: the level and the text of each line. */
export function useLog(): { readonly lines: string[]; readonly errors: () => string[] } {
  const lines: string[] = [];
  const note = (level: string) => (text: string) => lines.push(`${level} ${text}`);
  beforeAll(() => {
    Logger.overrideLogger({ log: note('log'), warn: note('warn'), error: note('error') });
  });
  beforeEach(() => {
    lines.length = 0;
  });
  return { lines, errors: () => lines.filter((line) => line.startsWith('error')) };
}
