export { isTracingEnabled, Tracing, TracingError } from './tracing';
