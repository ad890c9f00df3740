export { judgeBeforeContinue } from './judge-before-continue';
export { shedLoad } from './load-shedding';
export type { RateLimitOptions } from './rate-limit';
export { RateLimitGuard } from './rate-limit.guard';
