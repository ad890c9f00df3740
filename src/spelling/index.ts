export { findNearMatch } from './near-match';
