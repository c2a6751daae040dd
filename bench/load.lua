-- Requests each path of a file in turn, with one bearer token. Environment: BENCH_PATHS, BENCH_TOKEN; with BENCH_BODY
-- every request posts that text, with each `{n}` replaced by BENCH_SALT and the number of the request.
local paths = {}
for line in io.lines(os.getenv("BENCH_PATHS")) do paths[#paths + 1] = line end
local headers = { ["Authorization"] = "Bearer " .. os.getenv("BENCH_TOKEN") }
local body = os.getenv("BENCH_BODY")
local salt = os.getenv("BENCH_SALT") or ""
local requests = {}
local count = 0

function init(_)
  if body then headers["Content-Type"] = "application/json" end
  for index, path in ipairs(paths) do requests[index] = wrk.format("GET", path, headers) end
end

function request()
  local index = count % #requests + 1
  count = count + 1
  if not body then return requests[index] end
  return wrk.format("POST", paths[index], headers, (body:gsub("{n}", salt .. count)))
end

-- Prints one line of JSON for bench/load.ts: latencies in microseconds; `failed` counts all responses but 2xx and all errors.
function done(summary, latency, _)
  io.write(string.format(
    '{"requests":%d,"microseconds":%d,"p50":%d,"p99":%d,"failed":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  ))
end
