import { findNearMatch } from './near-match';

// environment.spec.ts has names that are near.
it.each(['', 'DATABSE_ULR', 'DATABASE', 'PRTO_', 'sslrootcert', 'TROP', 'POXX'])(
  'findNearMatch returns undefined for %j',
  (name) => {
    expect(findNearMatch(name, ['DATABASE_URL', 'PORT', 'sslmode'])).toBeUndefined();
  },
);
