import { findNearMatch } from './near-match';

// environment.spec.ts has names that are near.
it.each(['', 'DATABSE_ULR', 'DATABASE', 'PRTO_', 'sslrootcert', 'TROP', 'POXX'])(
  'nothing is near %j, which is more than one edit away',
  (name) => {
    expect(findNearMatch(name, ['DATABASE_URL', 'PORT', 'sslmode'])).toBeUndefined();
  },
);
