export { serveDocument } from './document.routes';
