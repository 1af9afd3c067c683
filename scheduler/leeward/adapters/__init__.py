"""The ports of `leeward.control.ports` on real servers: Nimbus (Thrift), ZooKeeper (kazoo), Redis, the clock, logs."""
