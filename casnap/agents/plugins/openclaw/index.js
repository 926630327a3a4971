// A plugin for OpenClaw that runs `casnap hook` before and after tools that may change files: of a prompt and of a turn's
// end it is told only where a person allows that.
//
// OpenClaw stops a tool or a turn whose hook fails or takes longer than its limit. So nothing here throws, and a hook that
// takes too long is left to itself: casnap goes on, and the next event finds the checkpoint.
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { homedir } from "node:os"
import { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry"

const MAY_CHANGE = ["write", "edit", "apply_patch", "exec", "process"]
const LIMIT_MS = 12_000
const PATIENCE_MS = 9_000
const BLOCKED = 2
const LONGEST_PROMPT = 1000

function command() {
  try {
    return JSON.parse(readFileSync(new URL("./casnap.json", import.meta.url), "utf8")).command
  } catch {
    return ["casnap"]
  }
}

// The exit status of `casnap hook`; 0 where it could not be run, or took too long.
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
        end(0)
      }, PATIENCE_MS)
      child.on("error", () => end(0))
      child.on("exit", (status) => end(status ?? 0))
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(payload))
    } catch {
      end(0)
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
    try {
      if (api.pluginConfig?.autoCheckpoint === false) return undefined
      const require = api.pluginConfig?.require === true
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
      if (require && status === BLOCKED && name === "before_tool") {
        return { block: true, blockReason: "casnap could take no checkpoint: run `casnap status` to see why" }
      }
    } catch {
      // the agent goes on; `casnap doctor` tells that no hook fires
    }
    return undefined
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
