/// A worker as the names of its claims and of its file in `workers/` spell it: `HOST.PID.TAG`. A person may have
/// written it, so it proves nothing.
package struct WorkerName: Hashable, Comparable, Sendable {
  /// `HOST.PID.TAG`; bytes that are no UTF-8 are U+FFFD.
  package let text: String
  /// The host's name, or what the worker calls its host.
  package let host: String
  /// nil where it is no valid process id.
  package let process: Int32?
  /// nil where the tag has none, as before version 0.2.
  let seat: WorkerSeat?

  package init?(_ bytes: some Collection<UInt8>) {
    let parts = bytes.split(separator: 0x2E, omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
    guard parts.count == 3, !parts.contains(where: \.isEmpty) else { return nil }
    text = String(decoding: bytes, as: UTF8.self)
    host = parts[0]
    process = Int32(parts[1]).flatMap { $0 > 0 ? $0 : nil }
    seat = WorkerSeat(ofTag: parts[2])
  }

  /// Whether a worker may have chosen it: each part is as ``WorkerID`` writes it.
  var isClean: Bool { text.split(at: ".").allSatisfy { WorkerID.isClean(String($0)) } }

  package static func < (one: WorkerName, other: WorkerName) -> Bool { one.text < other.text }
}

/// The owner of a claim: `HOST.PID.TAG`. The tag distinguishes two workers that got the same process id one after the
/// other, and ends in the worker's seat.
package struct WorkerID: Hashable, Sendable {
  /// The host's name, as names of claims have it.
  package let host: String
  /// `HOST.PID.TAG`.
  package let text: String
  /// nil before the spool is open, and where the kernel does not tell.
  let seat: WorkerSeat?
  private let process: Int32
  private let tag: UInt32
  private let namespace: String?

  /// - Parameter host: the host's name; bytes other than letters, digits and `-` become `_`, and it is cut to 40.
  /// - Parameter namespace: what /proc/self/ns/pid links to; nil if that is not known.
  package init(host: String, process: Int32, tag: UInt32, namespace: String? = nil) {
    self.init(host: Self.clean(host), process, tag, namespace, nil)
  }

  private init(host: String, _ process: Int32, _ tag: UInt32, _ namespace: String?, _ seat: WorkerSeat?) {
    (self.host, self.process, self.tag, self.namespace, self.seat) = (host, process, tag, namespace, seat)
    text = "\(host).\(process).\(hexadecimal(UInt64(tag), digits: 8))\(seat?.text ?? "")"
  }

  /// The same worker in a spool on this device.
  func seated(boot: String, device: UInt64, isLocal: Bool) -> WorkerID {
    let seat = namespace.map { WorkerSeat(boot: boot, namespace: $0, device: device, isLocal: isLocal) }
    return WorkerID(host: host, process, tag, namespace, boot == "unknown" ? nil : seat)
  }

  func tagged(_ tag: UInt32) -> WorkerID { WorkerID(host: host, process: process, tag: tag) }

  /// Whether `host` is what claims name it by, and not only similar.
  package static func isClean(_ host: String) -> Bool { clean(host) == host }

  static func clean(_ host: String) -> String {
    let kept = host.utf8.prefix(40).map { isAlphanumeric($0) || $0 == UInt8(ascii: "-") ? $0 : UInt8(ascii: "_") }
    return kept.isEmpty ? "localhost" : String(decoding: kept, as: UTF8.self)
  }
}

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

  /// - Parameter boot: the kernel's id of its boot (random(4)).
  /// - Parameter namespace: what /proc/self/ns/pid links to (namespaces(7)).
  /// - Parameter device: of the spool's directory (st_dev in stat(3type)), which each mount of a network file system
  ///   has for itself.
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

  var text: String { "\(isLocal ? Self.localMark : Self.sharedMark)\(digits)" }

  private static let length = 8
  private static let localMark: Character = "l"
  private static let sharedMark: Character = "s"
}
