/// Limits the additional memory of all transfers over several connections, whatever jobs ask for.
///
/// A transfer gets at most half of what is left, so that something remains for the next one. It keeps its share until
/// it ends. Used on the loop's thread only.
final class MemoryBudget {
  /// The share of one transfer.
  struct Share: Equatable {
    let connections: Int
    /// Maximum bytes per request.
    let largest: UInt64

    /// Bytes that may be in use in the worst case.
    var size: UInt64 { UInt64(connections) * (ChunkPlan.window(of: largest) + MemoryBudget.connection) }
  }

  /// Bytes that a connection takes in addition to the window: libcurl's buffer of 512 KiB, TLS, and the kernel's
  /// socket.
  static let connection: UInt64 = 640 << 10

  private let limit: UInt64
  private(set) var taken: UInt64 = 0

  init(limit: UInt64) { self.limit = limit }

  /// Reserves a share: as many connections as wanted, if necessary with smaller chunks, or fewer with the smallest
  /// chunks; nil if there is not enough for two.
  func take(connections wanted: Int, largest: UInt64) -> Share? {
    let room = (limit - min(taken, limit)) / 2
    let smallest = min(largest, ChunkPlan.smallest)
    let connections = min(UInt64(wanted), room / (ChunkPlan.window(of: smallest) + Self.connection))
    guard connections > 1 else { return nil }
    // The share of a connection, less what the connection itself takes, is its part of the window.
    let window = room / connections - Self.connection
    let share = Share(connections: Int(connections), largest: min(largest, window / ChunkPlan.window(of: 1)))
    taken += share.size
    return share
  }

  func giveBack(_ share: Share) { taken -= share.size }
}

extension WorkerOptions {
  /// Bytes for all transfers over several connections.
  var connectionMemory: UInt64 { maxMemory ?? MemoryLimit.ofConnections() }
}
