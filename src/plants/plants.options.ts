import type { Pool } from 'pg';

/** How a host wants its {@link PlantsModule}. */
export interface PlantsModuleOptions {
  /**
   * The file of the SQLite database, relative to the working directory. It and its directory are
   * created when missing.
   *
   * @default 'data/plants.db'
   */
  readonly sqlite?: string;

  /**
   * A PostgreSQL database to keep plants in instead: a connection URL, or a pool of the host's,
   * which the host closes after the module. The table is created when missing. Two connections
   * commit; further ones of the pool serve reading.
   *
   * @default undefined, which means SQLite
   */
  readonly postgres?: string | Pool;
}
