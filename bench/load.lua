-- Requests each path of a file in turn, with one bearer token. Environment: BENCH_PATHS, BENCH_TOKEN; with BENCH_BODY
-- every request posts that text, with each `{n}` replaced by BENCH_SALT and the number of the request; BENCH_METHOD, BENCH_TYPE and
-- BENCH_ACCEPT replace the method, the type of the text and the accepted type. BENCH_OVERLOADED counts responses 503 apart. With BENCH_LINKS
-- each response to it is a user, to which its texts are posted as soon as connections are free: on each line a
-- collection of its links, a space, and the text. With BENCH_PAUSE_MS each connection waits before a request, so long on average.
local paths = {}
for line in io.lines(os.getenv("BENCH_PATHS")) do paths[#paths + 1] = line end
local headers = { ["Authorization"] = "Bearer " .. os.getenv("BENCH_TOKEN") }
local body = os.getenv("BENCH_BODY")
local links = os.getenv("BENCH_LINKS")
local method = os.getenv("BENCH_METHOD") or (body and "POST" or "GET")
local salt = os.getenv("BENCH_SALT") or ""
local requests = {}
local count = 0
local pending = {}

function init(_)
  if body then headers["Content-Type"] = os.getenv("BENCH_TYPE") or "application/json" end
  headers["Accept"] = os.getenv("BENCH_ACCEPT")
  for index, path in ipairs(paths) do requests[index] = wrk.format(method, path, headers) end
end

local function post(path, text)
  return wrk.format(method, path, headers, (text:gsub("{n}", salt .. count)))
end

function request()
  local index = count % #requests + 1
  count = count + 1
  if not body then return requests[index] end
  local link = table.remove(pending)
  if link then return post(paths[index] .. "/" .. link.collection, link.body) end
  return post(paths[index], body)
end

-- Defined only where it is used: wrk then copies every body.
if links then
  function response(_, _, answer)
    local user = answer:match('^{"data":{"id":"([^"]+)","type":"user_authentication_info"')
    if not user then return end
    for collection, text in links:gmatch("(%S+) ([^\n]+)") do
      pending[#pending + 1] = { collection = user .. "/" .. collection, body = text }
    end
  end
end

-- Defined only where it is used, because it costs a timer for each request. wrk waits for whole milliseconds.
local pause = tonumber(os.getenv("BENCH_PAUSE_MS"))
if pause then
  function delay() return math.floor(pause + math.random()) end
end

local threads = {}
overloaded = 0

function setup(thread) threads[#threads + 1] = thread end

if os.getenv("BENCH_OVERLOADED") then
  function response(status, _, _)
    if status == 503 then overloaded = overloaded + 1 end
  end
end

-- Prints one line of JSON for bench/load.ts: latencies in microseconds; `statuses` counts all responses but 2xx and 3xx, `errors`
-- connections and time limits that failed; `overloaded` is part of `statuses`.
function done(summary, latency, _)
  local errors = summary.errors
  local rejected = 0
  for _, thread in ipairs(threads) do rejected = rejected + thread:get("overloaded") end
  io.write(string.format(
    '{"requests":%d,"microseconds":%d,"p50":%d,"p99":%d,"statuses":%d,"errors":%d,"overloaded":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.status, errors.connect + errors.read + errors.write + errors.timeout, rejected
  ))
end
