export { serveHealth } from './health';
export { Readiness } from './readiness';
export { closeOnSignal, type ShutdownOptions } from './shutdown';
