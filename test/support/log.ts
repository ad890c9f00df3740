import { Logger } from '@nestjs/common';

/** Records what is logged during each test of the calling file or `describe`: level and message per line. */
export function useLog(): { readonly lines: string[]; readonly errors: () => string[] } {
  const lines: string[] = [];
  const record = (level: string) => (message: string) => lines.push(`${level} ${message}`);
  beforeAll(() => {
    Logger.overrideLogger({ log: record('log'), warn: record('warn'), error: record('error') });
  });
  beforeEach(() => {
    lines.length = 0;
  });
  return { lines, errors: () => lines.filter((line) => line.startsWith('error')) };
}
