/** The thread of `copySqlite`. It copies a database when it is loaded. */
import { workerData } from 'node:worker_threads';
import { type CopyRequest, copyInThisThread } from './sqlite.maintenance';

copyInThisThread(workerData as CopyRequest);
