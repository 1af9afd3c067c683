"""Print how often each word was counted."""

from leeward.local import LocalCluster

client = LocalCluster.attach().open_redis(decode_responses=True)
counts = client.hgetall("words")
for word, count in sorted(counts.items(), key=lambda entry: -int(entry[1])):
    print(f"{count:>8}  {word}")
