-- Sends the requests of a plan file, drawn at random; every POST gets an Idempotency-Key of its own.
-- One line of the plan: method, path, API key, body, separated by tabs.

local threads = 0

function setup(thread)
  threads = threads + 1
  thread:set("number", threads)
end

function init(args)
  local salt = args[2]
  requests, count, prefix = {}, 0, salt .. "-" .. number .. "-"
  for line in io.lines(args[1]) do
    local method, path, key, body = line:match("^([^\t]*)\t([^\t]*)\t([^\t]*)\t(.*)$")
    local headers = { ["Authorization"] = "Bearer " .. key }
    if method == "POST" then
      headers["Content-Type"] = "application/json"
      headers["Idempotency-Key"] = "@@"
    end
    local text = wrk.format(method, path, headers, body ~= "" and body or nil)
    local from, to = text:find("@@", 1, true)
    if from then
      requests[#requests + 1] = { text:sub(1, from - 1), text:sub(to + 1) }
    else
      requests[#requests + 1] = { text }
    end
  end
  math.randomseed(tonumber(salt:sub(1, 7), 16) + number)
end

function request()
  local chosen = requests[math.random(#requests)]
  if chosen[2] == nil then
    return chosen[1]
  end
  count = count + 1
  return chosen[1] .. prefix .. count .. chosen[2]
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format('\nRESULT {"count": %d, "seconds": %.6f, "failed": %d, "p50_ms": %.4f, "p99_ms": %.4f}\n',
    summary.requests, summary.duration / 1e6, failed,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
