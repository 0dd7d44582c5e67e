// Runs the suite's command line again and again in one process, whose start takes longer than most scenarios.
//
//     node suite.mjs PROGRAM
//
// Each line of the input is {"arguments": [...], "env": {...}}, and is answered by {"code": 0, "stdout": "", "stderr": ""}.

import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

class Ended extends Error {}

const [node, , program] = process.argv;
const answer = process.stdout.write.bind(process.stdout);
let runs = 0;

function run(words, env) {
  const said = { stdout: '', stderr: '' };
  for (const name of Object.keys(said)) {
    process[name].write = (data) => {
      said[name] += data;
      return true;
    };
  }
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  process.argv = [node, program, ...words];
  return new Promise((done) => {
    process.exit = (code = 0) => {
      done({ code, ...said });
      throw new Ended(); // nothing after it runs
    };
    import(`${pathToFileURL(program)}?${runs++}`);
  });
}

process.on('unhandledRejection', (error) => {
  if (!(error instanceof Ended)) throw error;
});

for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line);
  answer(`${JSON.stringify(await run(order.arguments, order.env))}\n`);
}
