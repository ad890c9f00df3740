import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** OTLP's number of the kind of a span. */
const SERVER = 2;

/** An attribute in OTLP/JSON; its value is named by its type. */
interface KeyValue {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface ResourceSpans {
  readonly resource: { readonly attributes: readonly KeyValue[] };
  readonly scopeSpans: readonly {
    readonly spans: readonly { readonly kind: number; readonly attributes: readonly KeyValue[] }[];
  }[];
}

/** A collector of traces that understands OTLP in JSON, over HTTP. */
export class Collector {
  /** What was sent, word for word. */
  readonly bodies: string[] = [];
  private readonly server = createServer((request, response) => {
    void text(request).then((body) => {
      this.bodies.push(body);
      response.end();
    });
  });

  async start(): Promise<string> {
    await once(this.server.listen(0, '127.0.0.1'), 'listening');
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** The spans of requests to a server; attributes, also those of the service, are objects here. */
  get requests(): object[] {
    const sent = this.bodies.flatMap(
      (body) => (JSON.parse(body) as { resourceSpans: ResourceSpans[] }).resourceSpans,
    );
    return sent.flatMap(({ resource, scopeSpans }) =>
      scopeSpans
        .flatMap(({ spans }) => spans)
        .filter(({ kind }) => kind === SERVER)
        .map((span) => ({
          ...span,
          attributes: valuesOf(span.attributes),
          resource: valuesOf(resource.attributes),
        })),
    );
  }

  stop(): void {
    this.server.close();
    this.server.closeAllConnections();
  }
}

function valuesOf(attributes: readonly KeyValue[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
