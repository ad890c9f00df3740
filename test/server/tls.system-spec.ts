/** Connects to the service, a process, over TLS, also while its files change. */
import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect, type TLSSocket } from 'node:tls';
import { generate } from 'selfsigned';
import { TOKEN } from '../support/application';
import { errorBodies, errorNumbers } from '../support/error-bodies';
import { createRequest } from '../support/load';
import { plantStore } from '../support/plant-store';
import { type ServiceProcess, shareServiceHome, useServiceHome } from '../support/service-process';
import { until } from '../support/until';
import { openConnection as openPlainly, readResponses } from '../support/wire';

const FILES = { TLS_CERT: 'cert.pem', TLS_KEY: 'key.pem' };

const CREATION = createRequest(10).text.replace('Host: x', 'Host: x\r\nConnection: close');

describe('HTTPS', () => {
  const home = shareServiceHome();
  let service: ServiceProcess;
  let url: URL;
  let pairs = 0;
  beforeAll(async () => {
    await writePair();
    service = await home.start({ ...FILES, HEALTH_PORT: '0' });
    url = await service.url();
  });

  /** Replaces the certificate and the key, and returns the new common name. */
  async function writePair(): Promise<string> {
    const name = `pair-${++pairs}`;
    const { cert, private: key } = await makePair(name);
    replace('cert.pem', cert);
    replace('key.pem', key);
    return name;
  }

  function replace(name: string, text: string): void {
    writeFileSync(join(home.folder, 'new'), text);
    renameSync(join(home.folder, 'new'), join(home.folder, name));
  }

  async function open(to = url): Promise<TLSSocket> {
    const { port, hostname: host } = to;
    const socket = connect({ port: Number(port), host, rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    return socket;
  }

  async function currentName(): Promise<string> {
    const socket = await open();
    const { subject } = socket.getPeerCertificate();
    socket.destroy();
    return String(subject.CN);
  }

  it.each([
    ['plants', CREATION, { status: 200, body: { name: 'Fern' } }],
    ['malformed HTTP', 'garbage\r\n\r\n', { status: 400, body: errorBodies.malformedRequest }],
  ])('responds to %s as over HTTP', async (_what, request, response) => {
    expect(url.protocol).toBe('https:');
    const socket = await open();
    socket.write(request);

    expect(await readResponses(socket)).toMatchObject([response]);
  });

  it.each(['rsa', 'ec'] as const)(
    'reloads a new %s key pair, and keeps the old pair until both files are written',
    async (keyType) => {
      const warnings = () => service.stdout.split('Keeping the last valid content').length;
      const before = warnings();
      const current = await currentName();
      const { cert, private: key } = await makePair(`new-${keyType}`, keyType);

      // As in the files of some proxies, the key follows the certificate.
      replace('cert.pem', `${cert}\n${key}`);
      await until(() => warnings() > before);
      expect(await currentName()).toBe(current);

      replace('key.pem', key);
      await until(async () => (await currentName()) === `new-${keyType}`);
    },
  );

  it('logs a warning at startup and after a reload while the certificate has expired', async () => {
    const expired = await makePair('expired', 'ec', new Date('2020-01-01'));
    replace('old.pem', expired.cert);
    replace('old-key.pem', expired.private);
    const warning = 'A certificate in TLS_CERT is valid only from .* to Jan  1 00:00:00 2020 GMT.';

    const other = await home.start({ TLS_CERT: 'old.pem', TLS_KEY: 'old-key.pem' });
    replace('cert.pem', expired.cert);
    replace('key.pem', expired.private);

    for (const each of [other, service]) {
      expect(await each.waitForOutput(new RegExp(warning))).toHaveLength(1);
      expect(each.lines).toContainEqual(expect.objectContaining({ context: 'TLS', level: 40 }));
    }
    await writePair();
  });

  it('is used by `plant-store health` on both ports', async () => {
    const [, HEALTH_PORT] = await service.waitForOutput(/also on https:.*:(\d+)/);
    for (const port of [{ PORT: url.port }, { HEALTH_PORT }]) {
      const health = await plantStore(['health'], { ...port, ...FILES }, { cwd: home.folder });

      expect(health).toEqual({ code: 0, stdout: 'live\n', stderr: '' });
    }
  });

  it('closes a connection without a handshake, and does not count it as a request', async () => {
    const other = await home.start({ ...FILES, HEADERS_TIMEOUT: '5s' });
    const to = await other.url();

    await once(openPlainly(to).resume(), 'close');

    const socket = await open(to);
    socket.write(`GET /metrics HTTP/1.0\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`);
    expect(await text(socket)).toContain(
      `plant_store_errors_total{error="${errorNumbers.malformedRequest}"} 0\n`,
    );
  });
});

describe('HTTPS with the key of another pair', () => {
  const home = useServiceHome();

  it.each(['rsa', 'ec'] as const)('makes the service and `check` exit: %s', async (keyType) => {
    writeFileSync(join(home.folder, 'cert.pem'), (await makePair('first')).cert);
    writeFileSync(join(home.folder, 'key.pem'), (await makePair('other', keyType)).private);

    const service = home.spawn(FILES);
    const check = await plantStore(['check'], FILES, { cwd: home.folder });

    const sentence =
      'TLS_CERT and TLS_KEY cannot be used: TLS_CERT must begin with a certificate in PEM, and TLS_KEY must be its private key in PEM, without a passphrase.\n';
    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr).toBe(sentence);
    expect(check.stdout).toContain(`FAILED  TLS: ${sentence}`);
  });
});

function makePair(
  commonName: string,
  keyType: 'rsa' | 'ec' = 'rsa',
  notAfterDate = new Date('2100-01-01'),
) {
  const notBeforeDate = new Date('2019-01-01');
  const attributes = [{ name: 'commonName', value: commonName }];
  return generate(attributes, { keyType, notBeforeDate, notAfterDate });
}
