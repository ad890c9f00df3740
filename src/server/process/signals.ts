/*
 * Handles signals from the moment this file is loaded, before everything else: the kernel drops a signal that the first
 * process of a container does not handle.
 */
type Handler = (signal: NodeJS.Signals) => void;

/**
 * While the service starts, it has accepted no request, so the default action of the signal ends it. An exit would wait
 * for SQLite's thread, which may wait for a disk that hangs. For the first process of a container there is no default
 * action.
 */
let handle: Handler = (signal) => {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  process.exit(0);
};

for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
  process.on(signal, () => {
    handle(signal);
  });
}

/** Sets what the next SIGTERM, SIGINT or SIGHUP does. */
export function onSignal(handler: Handler): void {
  handle = handler;
}
