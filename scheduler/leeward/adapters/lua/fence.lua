-- Raise the fence of a topology; it never goes down. Atomic: two coordinators may set it at the same time.
--
-- KEYS[1]  fence   string   newest epoch that may write
-- ARGV[1]  epoch
-- Returns the epoch in force.
local present = tonumber(redis.call('GET', KEYS[1]) or '-1')
local epoch = tonumber(ARGV[1])
if epoch > present then
  redis.call('SET', KEYS[1], ARGV[1])
  return epoch
end
return present
