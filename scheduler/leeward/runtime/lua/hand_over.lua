-- Put pieces of a handover where their receiver reads, unless a newer epoch has fenced their sender off.
--
-- KEYS[1]   fence    string  newest epoch that may write
-- KEYS[2]   pieces   stream  one for each handover and receiving task
-- ARGV[1]   epoch of the handover
-- ARGV[2]   seconds after which nothing stays behind
-- ARGV[3]   pieces that may wait
-- ARGV[4..] pieces, in order
-- Returns how many found room, the first ones; or the fencing epoch as a negative number.
local fence = tonumber(redis.call('GET', KEYS[1]) or '-1')
if fence > tonumber(ARGV[1]) then
  return -fence
end
local room = tonumber(ARGV[3]) - redis.call('XLEN', KEYS[2])
local added = math.max(0, math.min(room, #ARGV - 3))
for i = 4, 3 + added do
  redis.call('XADD', KEYS[2], '*', 'p', ARGV[i])
end
if added > 0 then
  redis.call('EXPIRE', KEYS[2], ARGV[2])
end
return added
