import type { IncomingMessage } from 'node:http';

/**
 * Keeps the parsers of an Express host away from the routes that read their bodies themselves: a
 * function in front of the parsers marks their requests as read. It depends on what Express,
 * body-parser and Nest do not document:
 *
 * - `application.router.stack` has the routes of Express 5, as {@link Layer} says.
 * - Nest copies the metadata of a controller's method to the handler of its route. The handlers of its
 *   middleware, and of its own 404 for a path without the global prefix, are routes too, without metadata.
 * - body-parser 2 leaves a request alone that has `finished`, and other parsers one that has `_body`.
 *
 * Tested with Express 5.2.1 and 5.3.0 and body-parser 2.4.0, on Nest 11.2 and 12.5. `express.spec.ts` and
 * `host-bodies.e2e-spec.ts` fail when it changes.
 */
export function skipParsers(application: ExpressLike): ExpressHandler {
  let routes: readonly PostRoute[] | undefined;
  return function skipBodyParsing(request, _response, next) {
    if (request.method === 'POST' && !request.readableDidRead) {
      routes ??= findPostRoutes(application.router.stack);
      // Throws for a malformed escape, to which Express responds in either place. A controller of the host
      // that comes first, for example one that takes every path, responds and needs the body.
      if (routes.find(({ layer }) => layer.match(request.path))?.isOwn) {
        request._body = true;
        request.finished = true;
      }
    }
    next();
  };
}

/** Removes the marks, so that other code does not take the request for read. */
export function removeMarks(request: IncomingMessage & Marks): void {
  // Elsewhere they are absent, and deleting would make each access to the request slower.
  if (request._body === undefined) return;
  delete request._body;
  delete request.finished;
}

/** What is used of an Express application; the package is the host's. */
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
  /** Whether it reads its bodies itself, and no request for its path may be meant for another route. */
  readonly isOwn: boolean;
}

/** The routes of controllers that may respond to a POST, in the order in which Express asks them. */
function findPostRoutes(stack: readonly Layer[]): PostRoute[] {
  const layers = stack.filter(
    ({ route }) =>
      route?.methods.post &&
      route.stack.some(({ handle }) => Reflect.getMetadataKeys(handle).length > 0),
  );
  const readsBody = ({ route }: Layer): boolean | undefined =>
    route?.stack.some(({ handle }) => Reflect.hasMetadata(MARK, handle));
  // One path may have several versions, which a header distinguishes.
  const shared = new Set(layers.filter((each) => !readsBody(each)).map(({ route }) => route?.path));
  return layers.map((layer) => ({
    layer,
    isOwn: readsBody(layer) === true && !shared.has(layer.route?.path),
  }));
}

const MARK = Symbol('plant-store:reads-body');

/** Marks the method of a controller as one that reads the body itself. */
export function markForExpress(method: object): void {
  Reflect.defineMetadata(MARK, true, method);
}
