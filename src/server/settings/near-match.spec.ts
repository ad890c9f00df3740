import { findNearMatch } from './near-match';

// environment.spec.ts tests names that have a near match.
it.each(['', 'DATABSE_ULR', 'DATABASE', 'PRTO_', 'sslrootcert', 'TROP', 'POXX'])(
  'findNearMatch returns undefined for %j',
  (name) => {
    expect(findNearMatch(name, ['DATABASE_URL', 'PORT', 'sslmode'])).toBeUndefined();
  },
);
