import type { IncomingMessage } from 'node:http';

/**
 * Keeps the parsers of an Express host away from the routes that read their bodies themselves: a
 * function in front of the parsers marks their requests as read. It depends on what Express,
 * body-parser and Nest do not document:
 *
 * - `application.router.stack` has the routes of Express 5, as {@link Layer} says.
 * - Nest copies the metadata of a controller's method to the handler of its route.
 * - body-parser 2 leaves a request alone that has `finished`, and other parsers one that has `_body`.
 *
 * Tried with Express 5.2.1 and 5.3.0 and body-parser 2.4.0, on Nest 11.2 and 12.5. `express.spec.ts`
 * fails when it changes.
 */
export function skipParsers(application: ExpressLike): ExpressHandler {
  let own: readonly Layer[] | undefined;
  return function leavePlantsUnread(request, _response, next) {
    if (request.method === 'POST' && !request.readableDidRead) {
      own ??= findOwnRoutes(application.router.stack);
      // Throws for a malformed escape, which Express answers in either place.
      if (own.some((layer) => layer.match(request.path))) {
        request._body = true;
        request.finished = true;
      }
    }
    next();
  };
}

/** Removes the marks, so that other code does not take the request for read. */
export function removeMarks(request: IncomingMessage & Marks): void {
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

/** The routes that read bodies, but for those whose requests may be meant for a route of the host. */
function findOwnRoutes(stack: readonly Layer[]): Layer[] {
  const routes = stack.filter(({ route }) => route?.methods.post);
  const isOwn = ({ route }: Layer): boolean | undefined =>
    route?.stack.some(({ handle }) => Reflect.hasMetadata(MARK, handle));
  // One path may have several versions, which a header distinguishes.
  const shared = new Set(routes.filter((each) => !isOwn(each)).map(({ route }) => route?.path));
  return routes.filter((each) => isOwn(each) && !shared.has(each.route?.path));
}

const MARK = Symbol('plant-store:reads-body');

/** Marks the method of a controller as one that reads the body itself. */
export function markForExpress(method: object): void {
  Reflect.defineMetadata(MARK, true, method);
}
