import type { ClientConfig } from 'pg';
import { describeVersion } from '../plants/store/migrations';
import { PostgresDriver } from '../plants/store/postgres/postgres.driver';
import { toFailure } from '../plants/store/postgres/postgres.errors';
import { readSchema } from '../plants/store/postgres/postgres.schema';
import { readSettings, withSession } from '../plants/store/postgres/postgres.settings';

/**
 * Describes the database at an address and what the service would do with it. Changes nothing.
 *
 * @param where a connection URL, or settings of the driver
 * @throws OptionError when the URL or the settings are invalid
 * @throws Error stating why the service cannot use it
 */
export async function describePostgres(where: string | ClientConfig): Promise<string> {
  const { name } = new PostgresDriver(where);
  const store = await withSession(readSettings(where), readSchema).catch((error: unknown) => {
    throw toFailure(name, error);
  });
  if (!store) return `${name}, which has no table plants: the service will create it`;
  const { identity, version, risk } = store;
  if (risk !== undefined) console.error(`${name}: ${risk}.`);
  return identity === undefined || version === undefined
    ? `${name}, a table plants that was prepared by hand`
    : `${name}, the store ${identity}, ${describeVersion(version)}`;
}
