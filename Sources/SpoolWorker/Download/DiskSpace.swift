internal import Spool

/// Free space on the spool's disk. Each running transfer has reserved what it still has to receive. Otherwise two
/// transfers that fit one at a time would fill the disk together, and neither could continue. Used on the loop's thread
/// only.
final class DiskSpace {
  /// Why there is no space for the bytes still to come.
  struct Shortage {
    let needed: UInt64
    /// Bytes free now, less what others have reserved.
    let free: UInt64
    let kept: UInt64

    var reason: String { "\(needed) bytes still to come, \(free) free, --min-free keeps \(kept)" }
  }

  /// Fewer bytes than this are written without a question to the file system, unless some are to be kept free. If there
  /// is no space for them, the write says so.
  static let asked: UInt64 = 1 << 20

  /// Bytes to keep free (`--min-free`).
  let kept: UInt64
  private let spool: Spool
  /// The bytes that each running transfer still has to receive, as far as is known.
  private var takers: [ObjectIdentifier: () -> UInt64] = [:]

  init(_ spool: Spool, kept: UInt64) {
    self.spool = spool
    self.kept = kept
  }

  /// - Parameter stillToCome: in bytes; called whenever another transfer needs space.
  func enter(_ taker: AnyObject, stillToCome: @escaping () -> UInt64) {
    takers[ObjectIdentifier(taker)] = stillToCome
  }
  func leave(_ taker: AnyObject) { takers[ObjectIdentifier(taker)] = nil }

  /// The free bytes, if they are fewer than ``kept``.
  var freeIfShort: UInt64? {
    guard kept > 0, let free = spool.freeSpace(), free < kept else { return nil }
    return free
  }

  /// - Parameters:
  ///   - needed: bytes still to come; there is always space for 0, see also ``asked``.
  ///   - taker: the transfer that needs them, whose own reservation does not count.
  /// - Returns: nil if there is enough space, or the file system does not tell.
  func shortage(of needed: UInt64, for taker: AnyObject? = nil) -> Shortage? {
    guard needed > 0, needed >= Self.asked || kept > 0, let free = spool.freeSpace() else { return nil }
    var rest = free
    let own = taker.map { ObjectIdentifier($0) }
    for (other, stillToCome) in takers where other != own { rest -= min(rest, stillToCome()) }
    guard rest < kept || needed > rest - kept else { return nil }
    return Shortage(needed: needed, free: rest, kept: kept)
  }
}
