import type { ClientConfig } from 'pg';
import { describeVersion } from '../plants/persistence/migrations';
import { PostgresSessions } from '../plants/persistence/postgres/postgres.sessions';

/**
 * Describes the database at an address and what the service would do with it. Changes nothing.
 *
 * @param where a connection URL, or settings of the driver
 * @throws StoreOpenError when the URL or the settings are invalid
 * @throws Error stating why the service cannot use it
 */
export async function describePostgres(where: string | ClientConfig): Promise<string> {
  const sessions = new PostgresSessions(where, () => undefined, false);
  try {
    await sessions.open();
    const { name, schema } = sessions;
    if (!schema?.hasTable) return `${name}, which has no table plants: the service will create it`;
    const { identity, version } = schema;
    return identity === undefined || version === undefined
      ? `${name}, a table plants that was prepared by hand`
      : `${name}, the store ${identity}, ${describeVersion(version)}`;
  } finally {
    await sessions.close();
  }
}
