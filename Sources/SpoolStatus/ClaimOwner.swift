internal import Glibc
internal import Spool

extension ClaimName {
  /// A worker renews its claim's time every 30 s; another host's is believed until its lease is over (spool.5, Claims).
  private static let lease: Int64 = 300

  /// Whether the worker that has the claim `file` may be alive, as far as that shows without asking for its lock.
  func isAlive(_ file: FileName, modified: Int64, host ownHost: String, now: Timestamp) -> Bool {
    guard let host, now.seconds - modified < Self.lease else { return false }
    guard host == ownHost, let process = process(file) else { return true }
    // EPERM: it is there, and another user's (kill(2)).
    return kill(process, 0) == 0 || errno == EPERM
  }

  /// `HOST.PID.TAG`; nil where nobody's name is on the claim.
  func owner(_ file: FileName) -> String? {
    host == nil ? nil : escaped(file.bytes.dropFirst(job.fileName.bytes.count + 1))
  }

  private func process(_ file: FileName) -> pid_t? {
    let parts = file.bytes.dropFirst(job.fileName.bytes.count + 1).split(separator: 0x2E)
    guard parts.count == 3, let process = pid_t(String(decoding: parts[1], as: UTF8.self)), process > 0 else {
      return nil
    }
    return process
  }
}
