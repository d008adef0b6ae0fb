// Runs an agent with the client of AG-UI, as a user interface does, and prints what came of it as JSON.
//
// The argument is {url, token, threadId, turns: [{runId, say} or {runId, answer}]}. The client checks the order of the
// events by itself, and makes messages of them; where the events are wrong, it fails, and so does this program.

import { HttpAgent } from "@ag-ui/client";

const asked = JSON.parse(process.argv[2]);
const headers = asked.token ? { Authorization: `Bearer ${asked.token}` } : {};
const agent = new HttpAgent({ url: asked.url, headers, threadId: asked.threadId });
const said = [];
let interrupts = [];
for (const turn of asked.turns) {
  const events = [];
  let error = null;
  let resume;
  if (turn.answer === undefined) agent.addMessage({ id: turn.runId, role: "user", content: turn.say });
  else resume = interrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload: turn.answer }));
  try {
    await agent.runAgent(
      { runId: turn.runId, resume },
      {
        onEvent: ({ event }) => { events.push(event); },
        onRunErrorEvent: ({ event }) => { error = event.message; },
        onRunFinishedEvent: (ended) => { interrupts = ended.interrupts ?? []; },
      },
    );
  } catch (failure) {
    error ??= String(failure);
  }
  said.push({ events, error, interrupts, messages: structuredClone(agent.messages) });
}
console.log(JSON.stringify(said));
