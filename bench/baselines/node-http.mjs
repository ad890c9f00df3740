import { createServer } from 'node:http';

/** The lower bound: Node's own server parses the body and echoes it, without token, validation or store. */
createServer((request, response) => {
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (chunk) => (body += chunk));
  request.on('end', () => {
    const { name, tag } = JSON.parse(body || '{}');
    const content = JSON.stringify({ name, tag });
    response.writeHead(200, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(content),
    });
    response.end(content);
  });
}).listen(Number(process.env.PORT), '127.0.0.1');
