const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const QUOTED_STRING = '"(?:[^"\\\\]|\\\\.)*"';

/** RFC 9110 section 8.3.1; type and subtype, and where the parameters begin. */
const TYPE = new RegExp(`^${TOKEN}/${TOKEN}`);
/** RFC 9110 section 5.6.6, one parameter (or none: an empty one is allowed) with its semicolon. */
const PARAMETER = new RegExp(`[ \\t]*;[ \\t]*(?:(${TOKEN})=(${TOKEN}|${QUOTED_STRING}))?`, 'y');

/**
 * Whether a `Content-Type` says JSON in UTF-8: `application/json`, in any case, with any parameters
 * but a `charset` other than `utf-8`. A value that is not well-formed says nothing.
 */
export function isJsonMediaType(contentType: string): boolean {
  if (contentType === 'application/json') return true;
  const [type = ''] = TYPE.exec(contentType) ?? [];
  if (type.toLowerCase() !== 'application/json') return false;

  let at = type.length;
  const end = contentType.trimEnd().length;
  while (at < end) {
    PARAMETER.lastIndex = at;
    const parameter = PARAMETER.exec(contentType);
    if (parameter === null) return false;
    const [text, name = '', value = ''] = parameter;
    // RFC 9110 section 5.6.4: a backslash stands for what follows it.
    const charset = value.replace(/\\(.)/g, '$1');
    if (name.toLowerCase() === 'charset' && !/^"?utf-8"?$/i.test(charset)) return false;
    at += text.length;
  }
  return true;
}
