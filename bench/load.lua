-- Asks for each path of a file in turn, with one bearer token. Environment: BENCH_PATHS, BENCH_TOKEN.
local paths = {}
for line in io.lines(os.getenv("BENCH_PATHS")) do paths[#paths + 1] = line end
local requests = {}
local index = 0

function init(_)
  local headers = { ["Authorization"] = "Bearer " .. os.getenv("BENCH_TOKEN") }
  for each, path in ipairs(paths) do requests[each] = wrk.format("GET", path, headers) end
end

function request()
  index = index % #requests + 1
  return requests[index]
end

-- One line of JSON, for the bench to read: latencies in microseconds, `failed` anything but a 2xx.
function done(summary, latency, _)
  io.write(string.format(
    '{"requests":%d,"microseconds":%d,"p50":%d,"p99":%d,"failed":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  ))
end
