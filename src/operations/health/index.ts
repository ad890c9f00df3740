export { Readiness, serveHealth } from './health';
export { closeOnSignal, type ShutdownOptions } from './shutdown';
