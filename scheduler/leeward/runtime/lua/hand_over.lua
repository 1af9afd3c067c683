-- Put one piece of a handover where its receiver reads, unless a newer epoch has fenced its sender off.
--
-- KEYS[1]  fence    string  newest epoch that may write
-- KEYS[2]  pieces   stream  one for each handover and receiving task
-- ARGV[1]  epoch of the handover
-- ARGV[2]  the piece
-- ARGV[3]  seconds after which nothing stays behind
-- ARGV[4]  pieces that may wait
-- Returns 1; 0 if too many pieces wait; or the fencing epoch as a negative number.
local fence = tonumber(redis.call('GET', KEYS[1]) or '-1')
if fence > tonumber(ARGV[1]) then
  return -fence
end
if redis.call('XLEN', KEYS[2]) >= tonumber(ARGV[4]) then
  return 0
end
redis.call('XADD', KEYS[2], '*', 'p', ARGV[2])
redis.call('EXPIRE', KEYS[2], ARGV[3])
return 1
