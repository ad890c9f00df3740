import { join } from 'node:path';
import type { INestApplication } from '@nestjs/common';
import { PlantsModule } from '../../src/plants';
import { errorBodies } from '../support/error-bodies';
import { useFolder } from '../support/folder';
import { startHost } from '../support/orchard';
import { readPlants } from '../support/sqlite';

const isClass = (value: object): boolean =>
  /^class\b/.test(Function.prototype.toString.call(value));
type Method = (...parameters: unknown[]) => unknown;

/** A Proxy around each instance, as `@nestjs/observe` 0.3 makes it: methods are wrapped with their metadata, and called on the Proxy. */
function observe(calls: string[], instance: unknown): unknown {
  if (typeof instance === 'function') return new Proxy(instance, {});
  if (typeof instance !== 'object' || instance === null) return instance;
  const wrapped = new WeakMap<Method, Method>();
  return new Proxy(instance, {
    get(target, name, proxy) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function' || isClass(value)) return value;
      const method = value as Method;
      const known = wrapped.get(method);
      if (known) return known;
      const traced: Method = (...parameters) => {
        calls.push(`${target.constructor.name}.${String(name)}`);
        return Reflect.apply(method, proxy, parameters);
      };
      for (const key of Reflect.getMetadataKeys(method) as symbol[]) {
        Reflect.defineMetadata(key, Reflect.getMetadata(key, method), traced);
      }
      wrapped.set(method, traced);
      return traced;
    },
  });
}

describe.each(['Express', 'Fastify'] as const)(
  'a host on %s that observes instances',
  (adapter) => {
    let app: INestApplication;
    afterEach(() => app.close());
    const file = join(useFolder(), 'plants.db');

    it('creates a plant, and refuses another', async () => {
      const calls: string[] = [];
      const instrument = { instanceDecorator: (instance: unknown) => observe(calls, instance) };
      const imports = [PlantsModule.forRoot({ sqlite: file, auth: { tokens: ['host-token'] } })];
      const host = await startHost(adapter, imports, { instrument });
      ({ app } = host);
      const post = (body: string) =>
        fetch(new URL('/api/v1/plants', host.url), {
          method: 'POST',
          headers: { authorization: 'Bearer host-token', 'content-type': 'application/json' },
          body,
        });

      const created = await post('{"id":9007199254740993,"name":"Fern"}');
      const refused = await post('{"id":9007199254740993}');

      expect([created.status, await created.json()]).toEqual([200, { name: 'Fern' }]);
      expect([refused.status, await refused.json()]).toEqual([400, errorBodies.nameMissing]);
      expect(calls).toContain('PlantsService.create');
      await app.close();
      expect(readPlants(file)).toEqual([{ id: 9_007_199_254_740_993n, name: 'Fern' }]);
    });
  },
);
