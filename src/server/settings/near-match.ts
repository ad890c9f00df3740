/**
 * Finds the known name that an unknown name probably misspells. They may differ in case and by one edit: a
 * character is inserted, removed or replaced, or two neighbouring characters are swapped.
 */
export function findNearMatch(name: string, known: Iterable<string>): string | undefined {
  const upper = name.toUpperCase();
  for (const each of known) if (isWithinOneEdit(upper, each.toUpperCase())) return each;
  return undefined;
}

function isWithinOneEdit(a: string, b: string): boolean {
  let start = 0;
  while (start < a.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end++;

  const ofA = a.slice(start, a.length - end);
  const ofB = b.slice(start, b.length - end);
  const isSwap = ofA.length === 2 && ofB === ofA.charAt(1) + ofA.charAt(0);
  return isSwap || (ofA.length <= 1 && ofB.length <= 1);
}
