internal import Transfer

/// One of a job's URLs.
struct MirrorURL: Sendable {
  /// Counted from 1.
  let number: Int
  /// As the job has it: may hold secrets.
  let url: String
  let parts: URLParts
}
