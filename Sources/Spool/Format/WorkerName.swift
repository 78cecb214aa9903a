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

  /// nil where `bytes` are not three parts.
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
  var isClean: Bool { text.split(separator: ".").allSatisfy { WorkerID.isClean(String($0)) } }

  package static func < (one: WorkerName, other: WorkerName) -> Bool { one.text < other.text }
}
