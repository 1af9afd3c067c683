-- Raise the fence of a topology; it never goes down. Atomic: two coordinators may set it at the same time.
--
-- KEYS[1]  fence   string   newest epoch that may write snapshots
-- KEYS[2]  base    string   newest base that sinks may write under
-- ARGV[1]  epoch
-- ARGV[2]  base; 0 leaves it as it is
-- Returns the epoch in force.
local function raise(key, wanted)
  local present = tonumber(redis.call('GET', key) or '-1')
  if wanted > present then
    redis.call('SET', key, wanted)
    return wanted
  end
  return present
end
if tonumber(ARGV[2]) > 0 then
  raise(KEYS[2], tonumber(ARGV[2]))
end
return raise(KEYS[1], tonumber(ARGV[1]))
