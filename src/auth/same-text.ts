/**
 * Whether two texts are the same. How long that takes depends on the length of the first alone, and
 * not on how much of it is right. It is faster than `timingSafeEqual`, which needs buffers.
 */
export function isSameText(text: string, secret: string): boolean {
  let difference = text.length ^ secret.length;
  for (let at = 0; at < text.length; at++) {
    difference |= text.charCodeAt(at) ^ secret.charCodeAt(at % secret.length);
  }
  return difference === 0;
}
