import TestSupport
import Testing

@testable import SpoolWorker

/// The memory of several connections, of all jobs together.
@Suite struct MemoryTests {
  private static let mebi: UInt64 = 1 << 20

  @Test func whoeverAsksForLittleGetsIt() throws {
    let budget = MemoryBudget(limit: 512 * Self.mebi)
    let taken = budget.take(connections: 8, largest: 4 * Self.mebi)
    let share = try #require(taken)
    #expect(share.connections == 8 && share.largest == 4 * Self.mebi)
    budget.giveBack(share)
    #expect(budget.taken == 0)
  }

  /// Chunks get smaller first, then connections fewer, and the sum stays below the limit, whatever is asked for.
  @Test(arguments: [1, 2, 5, 50, 512, 100_000])
  func theSumIsBounded(limit: UInt64) {
    let budget = MemoryBudget(limit: limit * Self.mebi)
    var shares: [MemoryBudget.Share] = []
    for _ in 0..<1000 {
      guard let share = budget.take(connections: 32, largest: 4 * Self.mebi) else { break }
      #expect((2...32).contains(share.connections) && (ChunkPlan.smallest...4 * Self.mebi).contains(share.largest))
      #expect(share.connections == 32 || share.largest <= 4 * ChunkPlan.smallest, "fewer only where chunks are small")
      shares.append(share)
      #expect(budget.taken <= limit * Self.mebi && budget.taken == shares.reduce(0) { $0 + $1.size })
    }
    #expect(shares.isEmpty == (limit < 4) && shares.count < 1000)
    #expect(shares.map(\.size) == shares.map(\.size).sorted(by: >))
    for share in shares { budget.giveBack(share) }
    #expect(budget.taken == 0)
  }

  /// Version 2, 1 and both, on the host and in a container, where the path is the host's and leads nowhere.
  @Test(
    arguments: [
      (
        "0::/system.slice/a.service\n", ["/sys/fs/cgroup/system.slice/a.service/memory.max": "209715200\n"], 209_715_200
      ),
      (
        "0::/a/b\n",
        [
          "/sys/fs/cgroup/a/b/memory.max": "max\n", "/sys/fs/cgroup/a/memory.max": "400\n",
          "/sys/fs/cgroup/a/memory.high": "300\n",
        ], 300
      ),
      ("0::/\n", ["/sys/fs/cgroup/memory.max": "500\n"], 500),
      ("0::/docker/0af3\n", ["/sys/fs/cgroup/memory.max": "500\n"], 500),
      (
        "12:cpu,cpuacct:/x\n4:memory:/docker/0af3\n0::/x\n",
        [
          "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
          "/sys/fs/cgroup/memory/docker/0af3/memory.limit_in_bytes": "700\n", "/sys/fs/cgroup/cpu/x/memory.max": "1\n",
        ], 700
      ), ("0::/a:b\n", ["/sys/fs/cgroup/a:b/memory.max": "9\n"], 9), ("0::/\n", [:], nil),
      ("nonsense\n\n::\n", [:], nil),
    ] as [(String, [String: String], UInt64?)])
  func theLimitOfControlGroups(groups: String, files: [String: String], limit: UInt64?) {
    #expect(MemoryBudget.limit(ofGroups: groups) { files[$0] } == limit)
  }

  @Test func aDefaultThereIs() {
    #expect((1...MemoryBudget.largestDefault).contains(MemoryBudget.defaultLimit()))
  }
}
