-- Carry out one command for a sink, unless its process was replaced: a newer base than the writer's is in force.
-- Atomic, so that a fence cannot be raised between the look and the write.
--
-- KEYS[1]     base     string   newest base that sinks may write under; missing: any
-- KEYS[2...]  the keys of the command
-- ARGV[1]     base of the writer
-- ARGV[2...]  the command and its arguments
-- Returns the command's answer; an error FENCED <base in force> if it was refused.
local base = tonumber(redis.call('GET', KEYS[1]) or '-1')
if base > tonumber(ARGV[1]) then
  return redis.error_reply('FENCED ' .. base)
end
return redis.call(unpack(ARGV, 2))
