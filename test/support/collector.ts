import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** An attribute in OTLP/JSON; its value is named by its type. */
interface KeyValue {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface OtlpSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly attributes: readonly KeyValue[];
  readonly status: { readonly code: number };
}

interface ResourceSpans {
  readonly resource: { readonly attributes: readonly KeyValue[] };
  readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
}

/** A span as a collector got it; `kind` and `status` are OTLP's numbers. */
export interface CollectedSpan extends Omit<OtlpSpan, 'attributes' | 'status'> {
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly status: number;
}

/** A collector of traces that understands OTLP in JSON, over HTTP. */
export class Collector {
  /** What was sent, word for word. */
  readonly requests: { path: string; contentType: string | undefined; body: string }[] = [];

  /** What it answers with. */
  status = 200;

  private constructor(private readonly server: Server) {
    server.on('request', (request, response) => {
      const { url: path = '', headers } = request;
      void text(request).then((body) => {
        this.requests.push({ path, contentType: headers['content-type'], body });
        response.writeHead(this.status).end();
      });
    });
  }

  static async start(): Promise<Collector> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Collector(server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  get spans(): CollectedSpan[] {
    return this.resourceSpans
      .flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
      .map((span) => ({
        ...span,
        attributes: valuesOf(span.attributes),
        status: span.status.code,
      }));
  }

  /** What is said of the service that the first spans came from. */
  get resource(): Record<string, unknown> {
    return valuesOf(this.resourceSpans[0]?.resource.attributes ?? []);
  }

  stop(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  private get resourceSpans(): ResourceSpans[] {
    const bodies = this.requests.map(
      ({ body }) => JSON.parse(body) as Record<string, ResourceSpans[]>,
    );
    return bodies.flatMap(({ resourceSpans = [] }) => resourceSpans);
  }
}

function valuesOf(attributes: readonly KeyValue[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
