-- May this sender put pieces of a handover where their receiver reads? Asked in one transaction with the XADDs that
-- follow, which are NOMKSTREAM: where the stream is gone they do nothing. The pieces are not arguments of the script, as
-- Lua would copy them twice and go over each of their bytes for a hash.
--
-- KEYS[1]   fence    string  newest epoch that may write
-- KEYS[2]   pieces   stream  one for each handover and receiving task
-- ARGV[1]   epoch of the handover
-- ARGV[2]   seconds after which nothing stays behind
-- Returns how many pieces wait, and the stream is there; or the fencing epoch as a negative number, and it is gone.
local fence = tonumber(redis.call('GET', KEYS[1]) or '-1')
if fence > tonumber(ARGV[1]) then
  redis.call('DEL', KEYS[2])
  return -fence
end
if redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('XADD', KEYS[2], 'MAXLEN', '0', '*', 'p', '')
end
redis.call('EXPIRE', KEYS[2], ARGV[2])
return redis.call('XLEN', KEYS[2])
