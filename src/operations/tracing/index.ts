export { asksForTraces, Tracing, TracingError } from './tracing';
