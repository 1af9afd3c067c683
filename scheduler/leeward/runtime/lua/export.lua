-- Write some of one task's groups of a cut, unless a newer epoch has fenced its writer off. What the task owned comes
-- with the last of them: before that, nothing of what was written counts.
--
-- KEYS[1]  fence         string   newest epoch that may write
-- KEYS[2]  groups        hash     key group -> snapshot bytes
-- KEYS[3]  tasks         hash     task -> what it owned and where it is (MessagePack)
-- ARGV[1]  epoch of the writer
-- ARGV[2]  task
-- ARGV[3]  value for `tasks`; empty: more groups follow
-- ARGV[4]... key group, bytes, key group, bytes, ...
-- Returns 1, or the fencing epoch as a negative number.
local fence = tonumber(redis.call('GET', KEYS[1]) or '-1')
local epoch = tonumber(ARGV[1])
if fence > epoch then
  return -fence
end
for i = 4, #ARGV, 2 do
  redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
end
if ARGV[3] ~= '' then
  redis.call('HSET', KEYS[3], ARGV[2], ARGV[3])
end
return 1
