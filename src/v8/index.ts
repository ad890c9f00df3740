export { keepHeapSmall } from './small-heap';
export { tuneV8 } from './tune-v8';
export { limitYoungGeneration } from './young-generation';
