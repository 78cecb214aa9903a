internal import Transfer

/// One of a job's URLs.
struct MirrorURL: Sendable {
  /// Counted from 1.
  let number: Int
  /// As in the job. May contain secrets.
  let url: String
  let parts: URLParts

  /// Whether the host is an address, so that there is no other address family to try.
  var isAddress: Bool {
    parts.host.hasPrefix("[") || parts.host.utf8.allSatisfy { $0 == 0x2E || 0x30...0x39 ~= $0 }
  }
}
