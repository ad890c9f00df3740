export { isTracingEnabled, Tracing } from './tracing';
