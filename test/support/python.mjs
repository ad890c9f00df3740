// Runs a Python program: node python.mjs FILE. This is CPython and its standard library, compiled
// to WebAssembly, on the sockets of Node.js, so that a machine without Python has one too.
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { loadPyodide } from 'pyodide';

const [, , file] = process.argv;
const python = await loadPyodide({ env: { ...process.env, HOME: '/' } });
await python.useNodeSockFS();
python.globals.set('source', readFileSync(file, 'utf8'));

// Pyodide takes SystemExit for a crash. Python prints its argument and ends with 1.
const exit = await python.runPythonAsync(`
try:
    exec(source, {"__name__": "__main__"})
    reason = None
except SystemExit as error:
    reason = error.code
reason
`);
if (exit !== undefined) process.stderr.write(`${exit}\n`);
// Pyodide leaves the timer of a socket's time-out running, for which Node.js would wait.
process.exit(exit === undefined ? 0 : 1);
