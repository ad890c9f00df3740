/** Which values of `Content-Type` mean JSON in UTF-8. */
import { isJsonMediaType } from './media-type';

// prettier-ignore
it.each([
  'application/json', 'APPLICATION/JSON', ' application/json ;', 'application/json;charset=utf-8',
  'application/json; Charset="UTF-8" ; a=b', 'application/json;a="\\"; b=c";charset=utf8',
  'application/json;charset=utf-8;charset="utf8"', 'application/json;a;=b;c="d',
])('isJsonMediaType accepts %s', (type) => {
  expect(isJsonMediaType(type)).toBe(true);
});

// prettier-ignore
it.each([
  '', 'json', 'text/json', 'application/jsonp', 'application/merge-patch+json', 'application/json/x',
  'application/json charset=utf-8', 'application/json, text/plain', 'application/json\u00a0',
  ...[
    'charset=latin1', 'CHARSET="utf-16"', 'charset=""', 'charset', 'charset=', 'charset =latin1',
    'charset=utf-8x', 'charset=utf-8,latin1', 'charset=utf-8;charset=latin1', "charset*=latin1''x",
    'charset=latin1;charset=utf-8', 'a="b";charset="utf-8" latin1',
  ].map((parameters) => `application/json; ${parameters}`),
])('isJsonMediaType rejects %s', (type) => {
  expect(isJsonMediaType(type)).toBe(false);
});
