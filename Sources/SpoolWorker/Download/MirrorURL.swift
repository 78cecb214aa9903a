internal import Transfer

/// One of a job's URLs.
struct MirrorURL: Sendable {
  /// Counted from 1.
  let number: Int
  /// As the job has it: may hold secrets.
  let url: String
  let parts: URLParts

  /// The URL names an address, which has no other family.
  var isAddress: Bool {
    parts.host.hasPrefix("[") || parts.host.utf8.allSatisfy { $0 == 0x2E || 0x30...0x39 ~= $0 }
  }
}
