// A plugin for OpenClaw that runs `casnap hook` before and after tools that may change files: of a prompt and of a turn's
// end it is told only where a person allows that.
//
// OpenClaw stops a tool or a turn whose hook fails or takes longer than its limit. So nothing here throws, and a hook that
// takes too long is left to itself: casnap goes on, and the next event finds the checkpoint. Where a checkpoint is required
// a tool waits for that: whatever keeps casnap from saying in time that there is one keeps the tool from running.
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { homedir } from "node:os"
import { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry"

const MAY_CHANGE = ["write", "edit", "apply_patch", "exec", "process"]
const LIMIT_MS = 12_000
const PATIENCE_MS = 9_000
const LATE = -1
const MISSING = -2
const LONGEST_PROMPT = 1000

function command() {
  try {
    return JSON.parse(readFileSync(new URL("./casnap.json", import.meta.url), "utf8")).command
  } catch {
    return ["casnap"]
  }
}

const REASONS = {
  2: "casnap could take no checkpoint: run `casnap status` to see why",
  [LATE]: "casnap has taken no checkpoint in time: try again, or run `casnap status`",
  [MISSING]: "casnap cannot be run, and a checkpoint is required: run `casnap plugin install`",
}

function blocked(status) {
  return { block: true, blockReason: REASONS[status] ?? `casnap failed (${status}), and a checkpoint is required: run \`casnap doctor\`` }
}

// The exit status of `casnap hook`, or why there is none.
function run(words, payload) {
  return new Promise((done) => {
    let timer
    const end = (status) => {
      clearTimeout(timer)
      done(status)
    }
    try {
      const [program, ...rest] = words
      const child = spawn(program, rest, { stdio: ["pipe", "ignore", "ignore"] })
      timer = setTimeout(() => {
        child.unref() // nor does the end of OpenClaw wait for it
        child.stdin.unref?.()
        end(LATE)
      }, PATIENCE_MS)
      child.on("error", () => end(MISSING))
      child.on("exit", (status, signal) => end(status ?? signal))
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(payload))
    } catch {
      end(MISSING)
    }
  })
}

function workspaces(api, ctx) {
  const named = api.pluginConfig?.workspace
  const listed = (Array.isArray(named) ? named : [named]).filter((place) => typeof place === "string" && place)
  if (listed.length > 0) return listed.map((place) => place.replace(/^~(?=\/|$)/, homedir()))
  const own = api.runtime?.agent?.resolveAgentWorkspaceDir?.(api.config, ctx?.agentId ?? "main")
  return typeof own === "string" && own ? [own] : []
}

function teller(api, name) {
  return async (event, ctx) => {
    const require = api.pluginConfig?.require === true && name === "before_tool"
    try {
      if (api.pluginConfig?.autoCheckpoint === false) return undefined
      const words = [...command(), "hook", "--agent", "openclaw", ...(require ? ["--require"] : [])]
      const status = await run(words, {
        event: name,
        workspaces: workspaces(api, ctx),
        session: ctx?.sessionId ?? event?.sessionId,
        turn: ctx?.runId ?? event?.runId,
        tool: event?.toolName,
        call: event?.toolCallId,
        prompt: name === "prompt" && typeof event?.prompt === "string" ? event.prompt.slice(0, LONGEST_PROMPT) : undefined,
      })
      return require && status !== 0 ? blocked(status) : undefined
    } catch (error) {
      return require ? blocked(error) : undefined // else the agent goes on; `casnap doctor` tells that no hook fires
    }
  }
}

export default definePluginEntry({
  id: "casnap",
  name: "casnap",
  description: "Checkpoints of the workspace before an agent changes it.",
  register(api) {
    api.on("before_tool_call", teller(api, "before_tool"), { matcher: MAY_CHANGE, timeoutMs: LIMIT_MS })
    api.on("after_tool_call", teller(api, "after_tool"), { matcher: MAY_CHANGE, timeoutMs: LIMIT_MS })
    // these two are called only where OpenClaw is told to let it see conversations; message_received, which needs no
    // leave, tells neither of the agent nor of the run, and is waited for by nobody
    api.on("before_agent_run", teller(api, "prompt"), { timeoutMs: LIMIT_MS })
    api.on("agent_end", teller(api, "turn_end"))
    api.on("session_end", teller(api, "session_end"))
  },
})
