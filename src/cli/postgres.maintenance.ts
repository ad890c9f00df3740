import { describeVersion, MIGRATIONS } from '../plants/store/migrations';
import { PostgresDriver } from '../plants/store/postgres/postgres.driver';
import { toFailure } from '../plants/store/postgres/postgres.errors';
import { findStore } from '../plants/store/postgres/postgres.schema';
import {
  type PostgresLocation,
  readPoolConfig,
  withSession,
} from '../plants/store/postgres/postgres.settings';
import { probe } from '../plants/store/postgres/postgres.statements';

/**
 * Describes the database at an address and what the service would do with it. Stores nothing.
 * @throws OptionError when the URL or the settings are invalid
 * @throws Error stating why the service cannot use it
 */
export async function describePostgres(location: PostgresLocation): Promise<string> {
  const { name } = new PostgresDriver(location);
  const store = await withSession(readPoolConfig(location), async (session) => {
    const found = await findStore(session);
    // Inserts rows and undoes that, as the service does before it is ready.
    if (found && (found.version ?? MIGRATIONS.length) === MIGRATIONS.length) await probe(session);
    return found;
  }).catch((error: unknown) => {
    throw toFailure(name, error);
  });
  if (!store) return `${name}, which has no table plants: the service will create it`;
  const { identity, version, risk } = store;
  if (risk !== undefined) console.error(`${name}: ${risk}.`);
  return identity === undefined || version === undefined
    ? `${name}, a table plants that was prepared by hand`
    : `${name}, the store ${identity}, ${describeVersion(version)}`;
}
