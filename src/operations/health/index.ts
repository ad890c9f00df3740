export { serveHealth } from './health';
export { Readiness } from './readiness';
