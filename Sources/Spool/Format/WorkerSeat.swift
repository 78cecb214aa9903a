/// Where a worker sits: in which kernel and process namespace, and how it reaches the spool. The names of its claims
/// end in it.
///
/// Two hosts may have one name, as `worker-0` of two clusters has, and then the host in a claim's name proves nothing.
package struct WorkerSeat: Hashable, Sendable {
  /// Whether all changes of the spool went through the worker's kernel (``FileSystemKind/isLocal``). Its locks are
  /// those of every other worker there, also after a reboot.
  let isLocal: Bool
  /// A CRC-32 of boot id, process namespace and device.
  private let digits: String

  /// - Parameters:
  ///   - boot: the kernel's id of its boot (random(4)).
  ///   - namespace: what /proc/self/ns/pid links to (namespaces(7)).
  ///   - device: of the spool's directory (st_dev in stat(3type)), which each mount of a network file system has for
  ///     itself.
  init(boot: String, namespace: String, device: UInt64, isLocal: Bool) {
    let checksum = Checksum(of: "\(boot) \(namespace) \(device)")
    self.isLocal = isLocal
    digits = hexadecimal(UInt64(checksum.value), digits: Self.length)
  }

  /// Reads it from the last part of `HOST.PID.TAG`; nil where that has none, as before version 0.2.
  init?(ofTag tag: String) {
    guard tag.utf8.count == 9 + Self.length else { return nil }
    let seat = tag.dropFirst(8)
    guard let kind = seat.first, kind == Self.localMark || kind == Self.sharedMark else { return nil }
    isLocal = kind == Self.localMark
    digits = String(seat.dropFirst())
  }

  /// As it ends a tag.
  var text: String { "\(isLocal ? Self.localMark : Self.sharedMark)\(digits)" }

  private static let length = 8
  private static let localMark: Character = "l"
  private static let sharedMark: Character = "s"
}
