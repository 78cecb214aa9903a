internal import Spool

/// Room on the spool's disk, of which each transfer under way is promised what it is still to receive: else two that
/// fit one by one would fill the disk
/// together, and neither could go on. Touched by the loop's thread alone.
final class DiskSpace {
  /// Why bytes that are still to come have no room.
  struct Shortage {
    let needed: UInt64
    /// Free now, without what is promised to others.
    let free: UInt64
    let kept: UInt64

    var reason: String { "\(needed) bytes are still to come and \(free) are free, of which \(kept) are to be left" }
  }

  /// Bytes that stay free (`--min-free`).
  let kept: UInt64
  private let spool: Spool
  /// What each transfer under way is still to receive, as far as it is known.
  private var takers: [ObjectIdentifier: () -> UInt64] = [:]

  init(_ spool: Spool, kept: UInt64) {
    self.spool = spool
    self.kept = kept
  }

  /// - Parameter stillToCome: in bytes; asked whenever another transfer wants room.
  func enter(_ taker: AnyObject, stillToCome: @escaping () -> UInt64) {
    takers[ObjectIdentifier(taker)] = stillToCome
  }
  func leave(_ taker: AnyObject) { takers[ObjectIdentifier(taker)] = nil }

  /// Bytes free, where those are fewer than are to be left.
  var freeIfShort: UInt64? {
    guard kept > 0, let free = spool.freeSpace(), free < kept else { return nil }
    return free
  }

  /// - Parameters:
  ///   - needed: bytes to come; for none there is always room.
  ///   - taker: whose they are, so that its own promise does not count.
  /// - Returns: nil when they have room, or the file system does not say.
  func shortage(of needed: UInt64, for taker: AnyObject? = nil) -> Shortage? {
    guard needed > 0, let free = spool.freeSpace() else { return nil }
    var rest = free
    let own = taker.map { ObjectIdentifier($0) }
    for (other, stillToCome) in takers where other != own { rest -= min(rest, stillToCome()) }
    guard rest < kept || needed > rest - kept else { return nil }
    return Shortage(needed: needed, free: rest, kept: kept)
  }
}
