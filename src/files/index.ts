export { type Contents, FileFollower, type FollowerEvents } from './file-follower';
