/// The memory that transfers over several connections take beside what each transfer needs, all together: bounded,
/// whatever jobs ask for.
///
/// Whoever comes gets half of what is left at most, so that the next one finds something. What it got it keeps to its
/// end. Touched by the loop's thread alone.
final class MemoryBudget {
  /// What one transfer may take.
  struct Share: Equatable {
    let connections: Int
    /// The most bytes in one request.
    let largest: UInt64

    /// Bytes, all of them in use in the worst case.
    var size: UInt64 { UInt64(connections) * (ChunkPlan.window(of: largest) + MemoryBudget.connection) }
  }

  /// Bytes that a connection takes beside the window: libcurl's buffer of 512 KiB, and what TLS and the kernel's socket
  /// need.
  static let connection: UInt64 = 640 << 10

  private let limit: UInt64
  private(set) var taken: UInt64 = 0

  init(limit: UInt64) { self.limit = limit }

  /// As many connections as are asked for with smaller chunks, or fewer with the smallest; nil where there is not
  /// enough for two.
  func take(connections wanted: Int, largest: UInt64) -> Share? {
    let room = (limit - min(taken, limit)) / 2
    let smallest = min(largest, ChunkPlan.smallest)
    let connections = min(UInt64(wanted), room / (ChunkPlan.window(of: smallest) + Self.connection))
    guard connections > 1 else { return nil }
    // The share of each, less what it needs itself, is the window of a chunk.
    let window = room / connections - Self.connection
    let share = Share(connections: Int(connections), largest: min(largest, window / ChunkPlan.window(of: 1)))
    taken += share.size
    return share
  }

  func giveBack(_ share: Share) { taken -= share.size }
}
