import type { IncomingMessage } from 'node:http';

/**
 * Makes the parsers of an Express host skip the routes that read their own bodies: middleware in front of the
 * parsers marks the requests for these routes as read. It depends on undocumented behaviour of Express,
 * body-parser and Nest:
 *
 * - `application.router.stack` contains the routes of Express 5, in the form of {@link Layer}.
 * - Nest copies the metadata of a controller's method to the handler of its route. The middleware of Nest, and
 *   its own 404 for a path without the global prefix, are routes too, but their handlers have no metadata.
 * - body-parser 2 skips requests with `finished` set; other parsers skip requests with `_body` set.
 *
 * Tested with Express 5.2.1 and 5.3.0 and body-parser 2.4.0, on Nest 11.2 and 12.5. `express.spec.ts` and
 * `host-bodies.e2e-spec.ts` fail if this behaviour changes.
 */
export function skipParsers(application: ExpressLike): ExpressHandler {
  let routes: readonly PostRoute[] | undefined;
  return function skipBodyParsing(request, _response, next) {
    if (request.method === 'POST' && !request.readableDidRead) {
      routes ??= findPostRoutes(application.router.stack);
      // `match` throws for a malformed escape, to which Express responds with an error either way. If an
      // earlier route of the host matches too, for example one for every path, it responds and needs the body.
      if (routes.find(({ layer }) => layer.match(request.path))?.readsOwnBody) {
        request._body = true;
        request.finished = true;
      }
    }
    next();
  };
}

/** Removes the marks, so that other code does not think that the request was already read. */
export function removeMarks(request: IncomingMessage & Marks): void {
  // Other hosts set no marks. Deleting absent properties would make each access to the request slower.
  if (request._body === undefined) return;
  delete request._body;
  delete request.finished;
}

/** The part of an Express application that is used here. Express is a dependency of the host, not of us. */
interface ExpressLike {
  readonly router: { readonly stack: readonly Layer[] };
}

interface Layer {
  readonly route?: {
    readonly path: unknown;
    readonly methods: Readonly<Record<string, boolean>>;
    readonly stack: readonly { readonly handle: object }[];
  };
  match(path: string): boolean;
}

type ExpressHandler = (
  request: IncomingMessage & Marks & { readonly path: string },
  response: unknown,
  next: () => void,
) => void;

interface Marks {
  _body?: boolean;
  finished?: boolean;
}

interface PostRoute {
  readonly layer: Layer;
  /** Whether the route reads its own body and no other route handles the same path. */
  readonly readsOwnBody: boolean;
}

/** Finds the routes of controllers that may respond to a POST, in the order in which Express matches them. */
function findPostRoutes(stack: readonly Layer[]): PostRoute[] {
  const layers = stack.filter(
    ({ route }) =>
      route?.methods.post &&
      route.stack.some(({ handle }) => Reflect.getMetadataKeys(handle).length > 0),
  );
  const readsBody = ({ route }: Layer): boolean | undefined =>
    route?.stack.some(({ handle }) => Reflect.hasMetadata(MARK, handle));
  // The same path may have several versions, which a header distinguishes.
  const shared = new Set(layers.filter((each) => !readsBody(each)).map(({ route }) => route?.path));
  return layers.map((layer) => ({
    layer,
    readsOwnBody: readsBody(layer) === true && !shared.has(layer.route?.path),
  }));
}

const MARK = Symbol('plant-store:reads-body');

/** Marks the method of a controller as one that reads the body itself, for {@link skipParsers}. */
export function markForExpress(method: object): void {
  Reflect.defineMetadata(MARK, true, method);
}
