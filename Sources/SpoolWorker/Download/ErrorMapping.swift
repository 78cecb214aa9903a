internal import CLinux
internal import Spool
internal import SystemPackage
internal import Transfer

extension URLParts {
  /// Reached without any network.
  var isLoopback: Bool { host == "localhost" || host.hasPrefix("127.") || host == "::1" || host == "[::1]" }
}

extension Failure {
  /// What the spool's own trouble means for a job.
  init(_ error: SpoolError) {
    switch error.errno {
    case _ where error.isDiskFull:
      self.init(.diskFull, "\(error)")
    case _ where error.isTooLargeHere:
      let limit = spoolrun_file_size_limit()
      self.init(
        .tooLargeHere,
        limit > 0
          ? "\(error): the worker may write no more than \(limit) bytes to a file (ulimit -f), or its file system takes less"
          : "\(error): the file system takes no file of that size",
        expected: limit > 0 ? "at most \(limit)" : nil)
    case .tooManySymbolicLinkLevels, .notDirectory, .isDirectory, .fileNameTooLong, .improperLink:
      self.init(.badOutput, "the way to the output is barred: \(error)")
    default:
      self.init(.io, "\(error)")
    }
  }

  /// What libcurl's failure means for a job.
  init(_ failure: TransferFailure, isLoopback: Bool) {
    let code: FailureCode =
      switch failure.code {
      case .resolve: .resolve
      case .connect: .connect
      case .tls: .tls
      case .proxy: .proxy
      case .stalled: .stalled
      case .timeout: .timeout
      case .cut: .cut
      case .shortBody: .shortBody
      case .redirect: .redirect
      case .protocolNotEnabled: .protocol
      case .badURL: .malformed
      case .badResponse, .surplus: .badResponse
      case .outOfMemory: .io
      }
    self.init(code, failure.message)
    guard !isLoopback, code == .resolve || code == .connect else { return }
    // Not EHOSTUNREACH, which speaks of one host.
    let isUnreachable = [.networkUnreachable, .networkDown].contains(Errno(rawValue: failure.osErrno))
    if isUnreachable ? !NetworkPresence.hasRoute() : !NetworkPresence.hasAddress() {
      self.code = .noNetwork
      reason = "no network: \(reason)"
    }
  }
}
