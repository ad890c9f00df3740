import { createServer } from 'node:http';

/** The floor: Node's own server reads, parses and echoes. No token, no rules, no store. */
createServer((request, response) => {
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (chunk) => (body += chunk));
  request.on('end', () => {
    const { name, tag } = JSON.parse(body || '{}');
    const answer = JSON.stringify({ name, tag });
    response.writeHead(200, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(answer),
    });
    response.end(answer);
  });
}).listen(Number(process.env.PORT), '127.0.0.1');
