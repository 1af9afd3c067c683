-- Append an entry to a stream for a sink, unless one was appended under this name before, or its process was replaced.
-- Atomic, so that a process that ends between the two writes leaves neither a loss nor a repeat.
--
-- KEYS[1]     base     string      newest base that sinks may write under; missing: any
-- KEYS[2]     stream   stream
-- KEYS[3]     names    sorted set  names of the entries appended last, by time, us since 1970
-- ARGV[1]     base of the writer
-- ARGV[2]     name of the entry
-- ARGV[3]     entries that the stream keeps, about
-- ARGV[4]     names that are remembered
-- ARGV[5...]  fields and values of the entry
-- Returns 1, or 0 if the name is there already; an error FENCED <base in force> if it was refused.
local base = tonumber(redis.call('GET', KEYS[1]) or '-1')
if base > tonumber(ARGV[1]) then
  return redis.error_reply('FENCED ' .. base)
end
if redis.call('ZSCORE', KEYS[3], ARGV[2]) then
  return 0
end
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[3], '*', unpack(ARGV, 5))
local time = redis.call('TIME')
redis.call('ZADD', KEYS[3], time[1] * 1000000 + time[2], ARGV[2])
redis.call('ZREMRANGEBYRANK', KEYS[3], 0, -1 - tonumber(ARGV[4]))
return 1
